#!/usr/bin/env bash
# Types lines into `baton chat` on a real terminal and writes down what the person saw, as text.
#
#   scripts/transcript.sh LINES OUT [ARGUMENTS OF baton chat…]
#
# Each line of LINES is typed when the chat waits for one. `^C` and `^D` alone on a line are those keys; `^U` before a line empties what the
# prompt begins with. BATON names the command,
# COLUMNS and WAIT (seconds for one answer) the terminal. Runs in the current folder, which should be a project.
set -euo pipefail

lines=$1 out=$2
shift 2
baton=${BATON:-baton} columns=${COLUMNS:-100} wait=${WAIT:-60}
# A server of its own, so that nobody else's terminals or settings have to do with it.
terminal=(tmux -L "baton-transcript-$$" -f /dev/null)
trap '"${terminal[@]}" kill-server 2>/dev/null || true' EXIT

# What is seen, without the empty lines below the last one.
pane() { "${terminal[@]}" capture-pane -p -J -S - | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'; }

# Waits until the last line is a prompt again.
prompted() {
    for _ in $(seq $((wait * 5))); do
        if pane | tail -n 1 | grep -qE '> $|>$|^arguments > '; then return; fi
        sleep 0.2
    done
    pane >&2
    echo "no prompt after $wait seconds" >&2
    exit 1
}

"${terminal[@]}" set-option -g history-limit 50000 \; new-session -d -x "$columns" -y 50 \
    "env NO_COLOR=1 $(printf '%q ' "$baton" chat "$@"); echo \"[exit \$?]\"; sleep 600"
prompted
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
        ^C) "${terminal[@]}" send-keys C-c ;;
        ^D) "${terminal[@]}" send-keys C-d ;;
        *)
            if [[ $line == ^U* ]]; then
                "${terminal[@]}" send-keys C-u
                line=${line#^U}
            fi
            "${terminal[@]}" send-keys -l -- "$line"
            "${terminal[@]}" send-keys Enter
            # The line that was typed ends with no prompt.
            sleep 0.3
            ;;
    esac
    case $line in
        ^C | ^D | /quit) ;;
        *) prompted ;;
    esac
done <"$lines"
sleep 1
pane >"$out"
