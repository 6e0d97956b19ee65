#!/bin/sh
# test-engine.sh ENVIRONMENT [PYTEST ARGUMENTS]: checks and tests the engine server
# with the Python programs of the environment, such as .tools/engine.
set -eu
cd "$(dirname "$0")/../gpu"
programs=../$1/bin
shift
"$programs/ruff" check --quiet --no-cache .
"$programs/ruff" format --check --quiet --no-cache .
"$programs/mypy" --cache-dir "$(dirname "$programs")/mypy"
PYTHONDONTWRITEBYTECODE=1 "$programs/pytest" "$@"
