#!/usr/bin/env bash
# Makes sure that what Baton needs is on this machine, and says what it does. Safe to run again and again.
#   scripts/setup.sh run    what building needs
#   scripts/setup.sh test   that, and what the tests need
#   scripts/setup.sh coverage   that, and what `make coverage` needs
set -euo pipefail

purpose=${1:-test}
say() { printf 'setup: %s\n' "$*" >&2; }

command -v cargo >/dev/null || {
    say "Rust is missing. Install it with rustup, then try again."
    exit 1
}

# Debian packages, each with a command that shows whether it is there.
missing=()
command -v cc >/dev/null || missing+=(build-essential)
command -v git >/dev/null || missing+=(git)

can_install() { [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; }
install() {
    can_install || {
        say "these packages are missing; install them as root: apt-get install $*"
        exit 1
    }
    say "installing $*"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

((${#missing[@]} == 0)) || install "${missing[@]}"

[[ $purpose == test || $purpose == coverage ]] || exit 0

# The tests start servers of their own, so the package is kept from starting one for the whole machine.
if ! scripts/postgres.sh bin >/dev/null 2>&1; then
    can_install || install postgresql
    [[ -f /etc/postgresql-common/createcluster.conf ]] || install postgresql-common
    sed -i -E "s/^#?create_main_cluster.*/create_main_cluster = false/" /etc/postgresql-common/createcluster.conf
    install postgresql
    scripts/postgres.sh bin >/dev/null
fi

for component in rustfmt clippy; do
    cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || {
        say "adding the Rust component $component"
        rustup component add "$component"
    }
done

if ! cargo nextest --version >/dev/null 2>&1; then
    say "installing cargo-nextest, which runs the tests in parallel (once, takes some minutes)"
    cargo install cargo-nextest --locked --quiet
fi

# Built without optimisation: it runs for a second, and most of its build is waiting for it.
if ! command -v cargo-deny >/dev/null; then
    say "installing cargo-deny, which checks licences and sources of crates (once, takes some minutes)"
    CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-deny --version 0.20.2 --locked --debug --quiet
fi

# The browser for the tests of the web page, with fonts that look the same on every machine.
packages=()
[[ -x ${CHROMIUM:-/usr/bin/chromium} ]] || packages+=(chromium)
if command -v dpkg-query >/dev/null; then
    for package in fonts-liberation fonts-noto-color-emoji; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || packages+=("$package")
    done
fi
((${#packages[@]} == 0)) || install "${packages[@]}"

# A real MCP server from npm, for the tests of the MCP client. Needs Node.js, and gets one if there is none.
scripts/npm.sh crates/baton-mcp/tests/fixtures/package.json target/npm "the MCP servers"

# The AG-UI client from npm, which checks the events that Baton sends.
scripts/npm.sh crates/baton-agui/tests/fixtures/package.json target/npm/agui "the AG-UI client"

# The validator of OpenAPI documents from PyPI, which checks the description of the API, and schemathesis, which checks the server
# against it.
scripts/pip.sh crates/baton-server/tests/fixtures/requirements.txt target/pip/openapi "the OpenAPI checkers"

# The reference validator of Agent Skills from PyPI, which checks the skills that Baton writes.
scripts/pip.sh crates/baton-tools/tests/fixtures/requirements.txt target/pip/skills "the validator of Agent Skills"

# The official SDKs of A2A: their clients check the server, and agents written with them check the client.
scripts/pip.sh interop/python-0.3/requirements.txt target/pip/a2a-0.3 "the Python SDK of A2A 0.3"
scripts/pip.sh interop/python-1.3/requirements.txt target/pip/a2a-1.3 "the Python SDK of A2A 1.0"
scripts/npm.sh interop/js-0.3/package.json target/npm/a2a-0.3 "the JavaScript SDK of A2A 0.3"
scripts/npm.sh interop/js-1.3/package.json target/npm/a2a-1.3 "the JavaScript SDK of A2A 1.0"

# What the Python SDK and its tests need.
scripts/pip.sh sdk/python/tests/requirements.txt target/pip/sdk "the tests of the Python SDK"

[[ $purpose == coverage ]] || exit 0

rustup component list --installed 2>/dev/null | grep -q '^llvm-tools' || {
    say "adding the Rust component llvm-tools"
    rustup component add llvm-tools
}
if ! command -v cargo-llvm-cov >/dev/null; then
    say "installing cargo-llvm-cov, which measures which lines the tests reach (once, takes some minutes)"
    CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-llvm-cov --version 0.9.1 --locked --debug --quiet
fi
