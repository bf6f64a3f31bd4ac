#!/usr/bin/env bash
# Writes docs/transcripts/agent-creation.md anew: an agent is created on a real terminal, with the bundled agents and without a language
# model. BATON names the command.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
repository=$PWD
out=docs/transcripts/agent-creation.md
baton=${BATON:-$repository/target/debug/baton}

project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
mkdir "$project/agents" "$project/docs"
cp agents/*.md "$project/agents/"
cp docs/*.md "$project/docs/"
printf '' >"$project/baton.toml"
cat >"$project/lines.txt" <<'LINES'
I want to create an agent that answers questions about rate limits
Name the setting. Give an example.
serch_docs
skip
Limit Helper
How do I configure rate limiting for my agent?; What happens to a refused request?
search_docs
yes
/agents
/usage
/quit
LINES
(cd "$project" && BATON=$baton "$repository/scripts/transcript.sh" lines.txt seen.txt)
{
    cat <<'HEAD'
# A conversation with the agent creator

What a person saw who typed these lines into `baton chat`, in a terminal of 100 columns, with the bundled agents and without a language
model. They create an agent, misspell the name of a tool, are shown its line and column, correct it, and save the agent, which can be used
at once. It was written down by `scripts/transcripts/agent-creation.sh`, which types into a real terminal.

[Creating agents](../agent-creator.md) explains the steps.

````text
HEAD
    sed -E -e 's/ +$//' -e 's/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/<thread>/' "$project/seen.txt"
    echo '````'
} >"$out"
