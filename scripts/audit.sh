#!/bin/sh
# audit.sh: installs audit.py's tools and runs audit.py, which checks the pinned dependencies for vulnerabilities.
set -eu
cd "$(dirname "$0")/.."
command -v npm >/dev/null 2>&1 || { echo "missing tool: npm" >&2; exit 1; }
scripts/install-python.sh .tools/audit scripts/requirements-audit.txt
# pip-audit asks a pip for its version.
export PIPAPI_PYTHON_LOCATION="$PWD/.tools/pip/bin/python"
exec python3 scripts/audit.py "$PWD/.tools/audit/bin/pip-audit" "$PWD"
