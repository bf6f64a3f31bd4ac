#!/usr/bin/env bash
# Installs what a requirements.txt names into a folder of its own. Safe to run again and again.
#   scripts/pip.sh crates/baton-server/tests/fixtures/requirements.txt target/pip/openapi "the OpenAPI validator"
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wanted=$1 target=$2 what=$3
say() { printf 'setup: %s\n' "$*" >&2; }

python3 -c 'import ensurepip, venv' 2>/dev/null || {
    say "python3 with venv is missing. Install Python 3.9 or newer (Debian: python3-venv), then try again."
    exit 1
}

# Written last, so that an interrupted installation is done again.
stamp=$target/installed.txt
if cmp -s "$wanted" "$stamp"; then
    exit 0
fi

say "installing $what for the tests into $target"
rm -rf "$target"
python3 -m venv "$target"
"$target/bin/pip" install --quiet --disable-pip-version-check -r "$wanted"
cp "$wanted" "$stamp"
