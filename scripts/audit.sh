#!/bin/sh
# audit.sh: holds the pinned dependencies against the vulnerabilities that the
# registries know; see audit.py. Run scripts/install-test-tools.sh first.
set -eu
cd "$(dirname "$0")/.."
command -v npm >/dev/null 2>&1 || { echo "missing tool: npm" >&2; exit 1; }
exec python3 scripts/audit.py "$PWD/.tools/audit/bin/pip-audit" "$PWD"
