#!/bin/sh
# test-engine.sh ENVIRONMENT [PYTEST ARGUMENTS]: tests the engine server with the Python environment in a folder, such
# as .tools/engine.
set -eu
cd "$(dirname "$0")/../gpu"
programs=../$1/bin
shift
PYTHONDONTWRITEBYTECODE=1 "$programs/pytest" "$@"
