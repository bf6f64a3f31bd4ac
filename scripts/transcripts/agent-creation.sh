#!/usr/bin/env bash
# Writes docs/transcripts/agent-creation.md anew: agents are created on a real terminal, with the bundled agents, without a model and with
# one that says what is written below. BATON names the command.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
out=docs/transcripts/agent-creation.md

for folder in offline model; do
    bundled_agents "$project/$folder"
    mkdir "$project/$folder/docs"
    cp docs/*.md "$project/$folder/docs/"
done
touch "$project/offline/baton.toml"

cat >"$project/offline/lines.txt" <<'LINES'
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
type_lines "$project/offline"

cat >"$project/replies.json" <<'REPLIES'
[
  {"call": ["transfer_to_agent_creator", {"reason": "an agent is wanted", "context": {"purpose": "plans trips"}, "announcement": "I'll connect you with the assistant that creates agents."}]},
  {"text": "An agent that plans trips, good. Which tools may it use, what shall we call it, and what would people ask it?"},
  {"call": ["advance_workflow", {"values": {"tools": "search_docs", "name": "Trip Planner", "examples": "How do I get to Rome?"}}]},
  {"text": "Take the night train."},
  {"text": "The draft passed the check, and on your example it answered: “Take the night train.” Save and activate this agent?"},
  {"call": ["advance_workflow", {"values": {"confirmed": true}}]},
  {"call": ["complete_handoff", {"result_summary": "The agent Trip Planner is saved.", "artifacts": ["agent:trip-planner"]}]},
  {"text": "Your agent Trip Planner is active: ask it how to get to Rome."}
]
REPLIES
cat >"$project/model/lines.txt" <<'LINES'
I want to create an agent that plans trips
It may search the documents. Call it Trip Planner. People would ask how to get to Rome.
yes
/agents
/quit
LINES
use_model "$project/model"
type_lines "$project/model"

{
    cat <<'HEAD'
# A conversation with the agent creator

What a person saw who typed these lines into `baton chat`, in a terminal of 100 columns, with the bundled agents. Without a model, they
create an agent, misspell the name of a tool, are shown its line and column, correct it, and save the agent, which can be used at once. With
a model, one message says everything. It was written down by `scripts/transcripts/agent-creation.sh`, which types into a real terminal.

[Creating agents](../agent-creator.md) explains the steps.

## Without a model

HEAD
    shown "$project/offline"
    cat <<'MODEL'

## With a model

The model's words come from a script, so that the conversation can be repeated.

MODEL
    shown "$project/model"
} >"$out"
