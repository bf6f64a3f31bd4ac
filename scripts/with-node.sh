#!/usr/bin/env bash
# Runs a command with a Node.js that is new enough for the web page (see scripts/node.sh).
#   scripts/with-node.sh npm --prefix ui run check
set -euo pipefail

folder=$("$(dirname "${BASH_SOURCE[0]}")/node.sh")
PATH=${folder:+$folder:}$PATH exec "$@"
