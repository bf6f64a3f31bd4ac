# Shared by the scripts that write docs/transcripts: a project with the bundled agents, a model whose words come from a script, and what a
# terminal showed. Sourced after `set -euo pipefail`. BATON names the command.

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
repository=$PWD
baton=${BATON:-$repository/target/debug/baton}
project=$(mktemp -d)
trap 'kill "${model:-}" 2>/dev/null || true; rm -rf "$project"' EXIT

# bundled_agents DIR: copies the bundled agents to DIR/agents.
bundled_agents() {
    mkdir -p "$1"
    cp -r agents "$1/"
}

# use_model DIR [CONFIG]: serves the replies of $project/replies.json as a model on loopback and writes it to DIR/baton.toml, after CONFIG.
use_model() {
    "$repository/scripts/transcripts/model.py" "$project/replies.json" "$project/port" &
    model=$!
    until [[ -s $project/port ]]; do sleep 0.1; done
    cat >"$1/baton.toml" <<CONFIG
${2:-}
[models]
default = "local/m"
[models.providers.local]
base_url = "http://127.0.0.1:$(<"$project/port")/v1"
[models.providers.local.models.m]
assists = { workflow_values = false, workflow_evidence = false, agent_tools = false, search_first = false }
CONFIG
}

# type_lines DIR: types DIR/lines.txt into `baton chat` in a real terminal and writes what it showed to DIR/shown.txt.
type_lines() {
    (cd "$1" && BATON=$baton "$repository/scripts/transcript.sh" lines.txt shown.txt)
}

# shown DIR: what the terminal showed, as a block of Markdown. Ids of threads are replaced.
shown() {
    echo '````text'
    sed -E -e 's/ +$//' -e 's/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/<thread>/' \
        -e 's/baton chat -r [0-9a-f]+/baton chat -r <thread>/' "$1/shown.txt"
    echo '````'
}
