#!/usr/bin/env bash
# Writes docs/transcripts/second-request.md anew: the bundled agents on a real terminal, without a model and with one that says what is
# written below. BATON names the command.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
out=docs/transcripts/second-request.md

bundled_agents "$project/offline"
bundled_agents "$project/model"
touch "$project/offline/baton.toml"

cat >"$project/offline/lines.txt" <<'LINES'
I want to create a skill that sends Slack alerts
Help me debug my crashing service
yes
Read the incident report. Post an alert to the channel.
Help me debug my crashing service
no
It answers with status 500
cancel
yes
Bullet points would be great.
I'd like to talk to the main assistant
later
/quit
LINES
type_lines "$project/offline"

cat >"$project/replies.json" <<'REPLIES'
[
  {"call": ["transfer_to_skill_creator", {"reason": "a skill is wanted", "context": {"purpose": "sends Slack alerts"}}]},
  {"text": "Let's build your Slack alert skill. How is it done, step by step?"},
  {"text": "I'm sorry that your service crashes. What goes wrong, exactly? Please paste the first error."},
  {"text": "We were at the steps of your Slack alert skill. How is it done, step by step?"}
]
REPLIES
cat >"$project/model/lines.txt" <<'LINES'
I want to create a skill that sends Slack alerts
Help me debug my crashing service
no
cancel
yes
/quit
LINES
use_model "$project/model"
type_lines "$project/model"

{
    cat <<'HEAD'
# Something else during a handoff

What a person saw who typed these lines into `baton chat`, in a terminal of 100 columns, with the bundled agents. They begin a skill and ask for
something else in between. It was written down by `scripts/transcripts/second-request.sh`.

[Handoffs](../handoffs.md#something-else-in-between) explains what happens behind it.

## Without a model

HEAD
    shown "$project/offline"
    cat <<'MODEL'

## With a model

The model's words come from a script, so that the conversation can be repeated. It is not called for the request, nor for the reply.

MODEL
    shown "$project/model"
} >"$out"
