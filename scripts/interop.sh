#!/usr/bin/env bash
# Installs the official A2A SDKs, with which the tests write agents for Baton's client. Safe to run again and again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

servers=interop/servers target=target/interop/servers
scripts/pip.sh $servers/python-0.3/requirements.txt $target/python-0.3 "the Python SDK of A2A 0.3"
scripts/pip.sh $servers/python-1/requirements.txt $target/python-1 "the Python SDK of A2A 1.0"
scripts/npm.sh $servers/js-0.3/package.json $target/js-0.3 "the JavaScript SDK of A2A 0.3"
scripts/npm.sh $servers/js-1/package.json $target/js-1 "the JavaScript SDK of A2A 1.0"
