#!/usr/bin/env bash
# A PostgreSQL of our own for tests: in one folder, on a free port of this machine only, gone when it is stopped.
#   scripts/postgres.sh bin              where PostgreSQL's programs are; fails when there are none of version 15 or newer
#   scripts/postgres.sh start DIR        makes the folder and starts a server in it; prints its URL
#   scripts/postgres.sh restart DIR HOW  HOW as pg_ctl has it: smart, fast, immediate
#   scripts/postgres.sh stop DIR         stops it and removes the folder
set -euo pipefail

oldest=15
say() { printf 'postgres: %s\n' "$*" >&2; }

# The newest server there is. Debian keeps its programs out of the path.
bin() {
    local dir version best= best_version=0
    for dir in "$(pg_config --bindir 2>/dev/null || true)" /usr/lib/postgresql/*/bin /usr/pgsql-*/bin \
        /opt/homebrew/opt/postgresql@*/bin; do
        [[ -x $dir/initdb && -x $dir/postgres && -x $dir/pg_ctl ]] || continue
        version=$("$dir/postgres" --version | grep -oE '[0-9]+' | head -n 1)
        if ((version > best_version)); then best=$dir best_version=$version; fi
    done
    ((best_version >= oldest)) || {
        say "no PostgreSQL server of version $oldest or newer is installed; scripts/setup.sh test installs it"
        return 1
    }
    printf '%s\n' "$best"
}

# PostgreSQL refuses to run as root, so root runs it as the user that its package made.
as_user() {
    if [[ $(id -u) -eq 0 ]]; then
        (cd / && runuser -u postgres -- "$@")
    else
        "$@"
    fi
}

free_port() {
    local port
    for _ in {1..100}; do
        port=$((20000 + RANDOM % 12000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || {
            printf '%s\n' "$port"
            return
        }
    done
    say "no port is free"
    return 1
}

configure() {
    cat >>"$1/data/postgresql.conf" <<EOF
listen_addresses = '127.0.0.1'
port = $2
unix_socket_directories = ''
max_connections = 400
# Nothing here outlives its server, so nobody waits for the disk.
fsync = off
synchronous_commit = on
full_page_writes = off
EOF
}

start() {
    local dir=$1 bin port
    bin=$(bin)
    mkdir -p "$dir"
    dir=$(cd "$dir" && pwd)
    [[ $(id -u) -ne 0 ]] || chown postgres "$dir"
    as_user "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$dir/initdb.log" 2>&1 || {
        cat "$dir/initdb.log" >&2
        return 1
    }
    # Somebody may take the port between finding and using it.
    for _ in {1..5}; do
        port=$(free_port)
        configure "$dir" "$port"
        if as_user "$bin/pg_ctl" -D "$dir/data" -l "$dir/data/server.log" -t 60 -w start >/dev/null 2>&1; then
            printf '%s\n' "$port" >"$dir/port"
            printf 'postgres://postgres@127.0.0.1:%s/postgres\n' "$port"
            return
        fi
    done
    tail -n 20 "$dir/data/server.log" >&2
    return 1
}

# pg_ctl finds the process in the folder's own postmaster.pid.
restart() {
    as_user "$(bin)/pg_ctl" -D "$1/data" -l "$1/data/server.log" -t 60 -w -m "${2:-fast}" restart >/dev/null
}

stop() {
    [[ -d $1/data ]] || return 0
    if as_user test -f "$1/data/postmaster.pid"; then
        as_user "$(bin)/pg_ctl" -D "$1/data" -t 60 -w -m immediate stop >/dev/null 2>&1 || true
    fi
    rm -rf "$1"
}

case ${1:-} in
    bin) bin ;;
    start | restart | stop)
        [[ -n ${2:-} ]] || { say "which folder?"; exit 2; }
        "$@"
        ;;
    *)
        say "usage: scripts/postgres.sh bin | start DIR | restart DIR [HOW] | stop DIR"
        exit 2
        ;;
esac
