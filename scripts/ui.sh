#!/usr/bin/env bash
# Builds the web page into ui/dist if its sources have changed since the last time. Otherwise nothing is written, so that cargo has
# nothing to build again.
#   scripts/ui.sh build  fails if it cannot
#   scripts/ui.sh run    the same, but a failure is a notice: the caller goes on without a new page
#   scripts/ui.sh test   the same as build, and installs what the checks of the page need
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=${1:-test}
stamp=target/ui.stamp log=target/ui.log
# What is installed is known from a copy of the lock file, which goes when somebody removes node_modules.
installed=ui/node_modules/.installed-lock.json
export PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1
say() { printf 'ui: %s\n' "$*" >&2; }
trap 'exit 130' INT
trap 'exit 143' TERM

if [[ $mode == run ]]; then
    scripts/ui.sh build || say "the web page was not built; Baton goes on without it, or with the one from before"
    exit 0
fi

[[ -f ui/package.json ]] || {
    say "there is no ui/package.json here"
    exit 1
}
mkdir -p target

# One at a time, where the system can do that.
if command -v flock >/dev/null; then
    exec 9>target/ui.lock
    flock 9
fi

# The files that Git tracks or would track; outside of a checkout, all that are not results.
sources() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files -z --cached --others --exclude-standard -- ui
    else
        find ui \( -name node_modules -o -path ui/dist -o -name test-results -o -name playwright-report \) -prune -o -type f -print0
    fi
}
# Names and contents. A file that was removed but is still tracked counts by its absence.
fingerprint() {
    sources | LC_ALL=C sort -zu | while IFS= read -r -d '' file; do
        if [[ -f $file ]]; then printf '%s\0' "$file"; fi
    done | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1
}

# Quiet unless it fails.
logged() {
    "$@" >>"$log" 2>&1 || {
        tail -n 30 "$log" >&2
        say "\`$*\` failed; $PWD/$log has all of its output"
        exit 1
    }
}

is_installed() { cmp -s ui/package-lock.json "$installed"; }
# Not `npm ci`: that refuses a lock file without the builds for every other system, which not every registry has.
install() {
    say "installing what the web page needs (npm install)"
    logged npm --prefix ui install --no-save --no-audit --no-fund --ignore-scripts --loglevel=error
    cp ui/package-lock.json "$installed"
}

is_built() { [[ -f ui/dist/index.html && -f $stamp && $(<"$stamp") == "$wanted" ]]; }
build() {
    say "building the web page"
    rm -f "$stamp"
    logged npm --prefix ui run build
    [[ -f ui/dist/index.html ]] || {
        say "the build wrote no ui/dist/index.html"
        exit 1
    }
    echo "$wanted" >"$stamp"
}

wanted=$(fingerprint)
if is_built && { [[ $mode != test ]] || is_installed; }; then exit 0; fi

folder=$(scripts/node.sh)
PATH=${folder:+$folder:}$PATH
: >"$log"
is_installed || install
is_built || build
