#!/usr/bin/env bash
# Writes docs/transcripts/approvals.md anew: a conversation with the bundled debugger on a real terminal, with a model that says what is
# written below. BATON names the command.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
out=docs/transcripts/approvals.md

mkdir "$project/agents"
cp agents/debugger.md "$project/agents/"
printf '#!/bin/sh\n# Builds the site.\nmkdirr -p site\ncp index.html site/\necho built\n' >"$project/build.sh"
echo '<h1>Hello</h1>' >"$project/index.html"

cat >"$project/replies.json" <<'REPLIES'
[
  {"call": ["read_file", {"path": "build.sh"}]},
  {"call": ["shell", {"command": "sh build.sh"}]},
  {"text": "Proven: line 3 calls `mkdirr`, which does not exist, so `site` is missing and the copy fails. May I correct the name?"},
  {"call": ["write_file", {"path": "build.sh", "content": "#!/bin/sh\nmkdir -p site\ncp index.html site/\necho built\n"}]},
  {"call": ["write_file", {"path": "build.sh", "content": "#!/bin/sh\n# Builds the site.\nmkdir -p site\ncp index.html site/\necho built\n"}]},
  {"call": ["shell", {"command": "sh build.sh"}]},
  {"text": "It works: the script printed `built`, and I kept your comment."},
  {"call": ["shell", {"command": "sh build.sh && ls site"}]},
  {"text": "The second run worked too, and `site/index.html` is there."}
]
REPLIES
cat >"$project/lines.txt" <<'LINES'
My build fails with "mkdirr: not found". Please find out why.
e
^U{"command": "sh -x build.sh"}
Yes, please.
d
Keep the comment in the second line.
a
r
Run it once more and show me the result.
/quit
LINES

use_model "$project" '[agents]
main = "debugger"
[tools.shell]
enabled = true'
COLUMNS=110 type_lines "$project"

cat >"$out" <<'HEAD'
# A conversation with approvals

What a person saw who typed these lines into `baton chat`, in a terminal of 110 columns, with the bundled debugger. `shell` and `write_file` need
approval there. The first command is approved with changes, the first file is denied with a reason, the second one is approved, and the next
command is approved for the rest of the conversation, so the last one is not asked. The model's words come from a script, so that the conversation
can be repeated; everything else is real. It was written down by `scripts/transcripts/approvals.sh`.

[Approvals and questions](../approvals.md) explains what happens behind it.

HEAD
shown "$project" >>"$out"
