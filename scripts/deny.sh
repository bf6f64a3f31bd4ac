#!/usr/bin/env bash
# Checks licences, sources and banned crates with cargo-deny (deny.toml), and advisories where the database of RustSec can be reached.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'deny: %s\n' "$*" >&2; }
deny=$(command -v cargo-deny) || { say "cargo-deny is missing; scripts/setup.sh test installs it"; exit 1; }

# A build downloads the crates of this platform only; the check reads those of all platforms.
cargo fetch --locked --quiet
"$deny" --offline --all-features check --hide-inclusion-graph bans licenses sources

# A clone of the database: not every network lets it through.
if timeout 120 "$deny" --all-features fetch db >/dev/null 2>&1; then
    "$deny" --all-features check --hide-inclusion-graph --disable-fetch advisories
else
    say "the database of RustSec cannot be reached, so advisories were NOT checked"
fi
