#!/usr/bin/env bash
# Writes the list of everything that the `baton` command contains, and checks it against the schema of CycloneDX.
#   scripts/sbom.sh target/baton.cdx.json
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/pip.sh scripts/sbom/requirements.txt target/pip/sbom "the schema of CycloneDX"
target/pip/sbom/bin/python scripts/sbom/sbom.py "${1:-target/baton.cdx.json}"
