#!/usr/bin/env bash
# Installs the AG-UI client that the tests check events with into target/npm/agui. Safe to run again and again.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
wanted=$here/fixtures/package.json
target=$here/../../../target/npm/agui
say() { printf 'setup: %s\n' "$*" >&2; }

for command in node npm; do
    command -v "$command" >/dev/null || {
        say "$command is missing. Install Node.js 20 or newer with npm, then try again."
        exit 1
    }
done

# Written last, so that an interrupted installation is done again.
stamp=$target/installed.json
if cmp -s "$wanted" "$stamp"; then
    exit 0
fi

say "installing the AG-UI client for the tests into target/npm/agui"
mkdir -p "$target"
rm -f "$stamp"
cp "$wanted" "$target/package.json"
npm install --prefix "$target" --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel=error >/dev/null
cp "$wanted" "$stamp"
