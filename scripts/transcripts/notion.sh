#!/usr/bin/env bash
# Writes docs/transcripts/notion.md anew: a skill that summarizes Notion pages, made with the bundled agents on a real terminal, without a
# model and with one that says what is written below. BATON names the command.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
out=docs/transcripts/notion.md

bundled_agents "$project/offline"
bundled_agents "$project/later"
bundled_agents "$project/model"
touch "$project/offline/baton.toml" "$project/later/baton.toml"

cat >"$project/offline/lines.txt" <<'LINES'
I want to create a skill that summarizes Notion pages
I want to summarize my project pages. Bullet points would be great.
yes
Notion Summary
summarize my Notion pages
skip
yes
/quit
LINES
type_lines "$project/offline"

{ head -n 2 "$project/offline/lines.txt"; printf '%s\n' cancel /quit; } >"$project/later/lines.txt"
type_lines "$project/later"
left=$(shown "$project/later")
cat >"$project/later/lines.txt" <<'LINES'
yes
Notion Summary
/quit
LINES
type_lines "$project/later"

cat >"$project/replies.json" <<'REPLIES'
[
  {"call": ["transfer_to_skill_creator", {"reason": "skill_creation_workflow", "announcement": "I'll connect you with our Skill Creation Assistant who specializes in building custom skills.", "context": {"purpose": "summarizes Notion pages"}}]},
  {"text": "Hi! I'm here to help you create a skill for summarizing Notion pages.\n\nLet's start with the basics:\n1. What specific Notion pages or databases will this skill access?\n2. How should the summaries be formatted (bullet points, paragraphs, etc.)?"},
  {"call": ["advance_workflow", {"values": {"steps": "Summarize my project pages.", "format": "bullets"}}]},
  {"text": "Got it! Let me gather a bit more information:\n\n- Should the skill summarize all content or focus on specific sections?\n- How long should each summary be?"},
  {"call": ["advance_workflow", {"values": {"steps": "Read the project pages.\nSummarize only the decisions, five lines each.", "name": "Notion Summary"}}]},
  {"text": "Thank you. What would people say when they want it?"},
  {"call": ["advance_workflow", {"values": {"triggers": "summarize my Notion pages"}}]},
  {"text": "The skill is written and its examples are tested. Save and activate this skill?"},
  {"call": ["advance_workflow", {"values": {"confirmed": true}}]},
  {"call": ["complete_handoff", {"result_summary": "The skill is saved.", "artifacts": ["skill:notion-summary"]}]},
  {"text": "Great, your 'Notion Summary' skill is now active."}
]
REPLIES
cat >"$project/model/lines.txt" <<'LINES'
I want to create a skill that summarizes Notion pages
I want to summarize my project pages. Bullet points would be great.
Only the decisions, five lines each. Call it Notion Summary.
summarize my Notion pages
yes
/quit
LINES
use_model "$project/model"
type_lines "$project/model"

{
    cat <<'HEAD'
# A skill that summarizes Notion pages

What a person saw who typed these lines into `baton chat`, in a terminal of 100 columns, with the bundled agents. The main agent announces the
specialist in a sentence of its own, the specialist's mode follows, then its first question; each reply has the progress. It was written down by
`scripts/transcripts/notion.sh`.

[Handoffs](../handoffs.md#what-people-see) explains what happens behind it.

## Without a model

HEAD
    shown "$project/offline"
    cat <<'MODEL'

## With a model

The model's words come from a script, so that the conversation can be repeated.

MODEL
    shown "$project/model"
    cat <<'LATER'

## Continued in a new conversation

Without a model. The person leaves in the middle.

LATER
    echo "$left"
    cat <<'LATER'

Then they begin a new conversation. It offers the unfinished work, which moves there after a yes.

LATER
    shown "$project/later"
} >"$out"
