#!/usr/bin/env bash
# Runs a command with a PostgreSQL for tests: that of BATON_TEST_POSTGRES if it answers, otherwise one of its own, which is
# stopped when the command has ended, however it ends.
#   scripts/with-postgres.sh cargo nextest run -p baton-store
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { printf 'with-postgres: %s\n' "$*" >&2; }

answers() {
    "$("$here/postgres.sh" bin)/pg_isready" -q -t 5 -d "$1" && return
    say "the server of BATON_TEST_POSTGRES does not answer; starting another one"
    return 1
}

# A place that whoever runs the server can reach: beside what was built, or else a temporary folder. Not in TMPDIR, which may be
# a folder that only root can enter.
place() {
    local target=${CARGO_TARGET_DIR:-$here/../target} dir
    mkdir -p "$target/postgres"
    dir=$(mktemp -d "$target/postgres/XXXXXX")
    if [[ $(id -u) -eq 0 ]]; then
        chown postgres "$dir"
        if ! runuser -u postgres -- test -w "$dir"; then
            rmdir "$dir"
            dir=$(mktemp -d -p /tmp)
            chown postgres "$dir"
        fi
    fi
    (cd "$dir" && pwd)
}

if [[ -n ${BATON_TEST_POSTGRES:-} ]] && answers "$BATON_TEST_POSTGRES"; then
    exec "$@"
fi

# Tests that need a server to break make theirs in the same folder, so that none outlives the command.
BATON_TEST_POSTGRES_DIR=$(place)
export BATON_TEST_POSTGRES_DIR
clean_up() {
    local data
    for data in "$BATON_TEST_POSTGRES_DIR"/*/data; do
        "$here/postgres.sh" stop "$(dirname "$data")"
    done
    rm -rf "$BATON_TEST_POSTGRES_DIR"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

BATON_TEST_POSTGRES=$("$here/postgres.sh" start "$BATON_TEST_POSTGRES_DIR/main") || {
    say "PostgreSQL did not start"
    exit 1
}
export BATON_TEST_POSTGRES
"$@"
