#!/usr/bin/env bash
# Installs what a package.json names into a folder. Safe to run again and again.
#   scripts/npm.sh crates/baton-mcp/tests/fixtures/package.json target/npm "the MCP servers"
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wanted=$1 target=$2 what=$3
say() { printf 'setup: %s\n' "$*" >&2; }

# Written last, so that an interrupted installation is done again.
stamp=$target/installed.json
if cmp -s "$wanted" "$stamp"; then
    exit 0
fi

say "installing $what for the tests into $target"
mkdir -p "$target"
rm -f "$stamp"
cp "$wanted" "$target/package.json"
scripts/with-node.sh npm install --prefix "$target" --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel=error >/dev/null
cp "$wanted" "$stamp"
