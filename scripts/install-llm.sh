#!/bin/sh
# Installs llama-cpp-python in .tools/llm, where it is missing. It comes as
# source, which takes some minutes to build, and a C++ compiler and CMake.
set -eu
cd "$(dirname "$0")"

./preflight.sh run-llm
environment=../.tools/llm
wanted=$(python3 --version; cat llm-requirements.txt)
if [ "$(cat "$environment/made-of" 2>/dev/null)" = "$wanted" ]; then
	exit 0
fi
echo "Building llama-cpp-python. This takes some minutes." >&2
python3 -m venv --clear "$environment"
# Without the parts that read pictures, which text does not need.
CMAKE_ARGS="-DLLAVA_BUILD=OFF" "$environment/bin/pip" install --quiet --disable-pip-version-check --requirement llm-requirements.txt
printf '%s\n' "$wanted" >"$environment/made-of"
