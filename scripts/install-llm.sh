#!/bin/sh
# Installs llama.cpp's server in .tools/llm if it is missing. If PyPI has no xllamacpp wheel for this system (such as
# musl), pip compiles it: the package's page lists the requirements.
set -eu
cd "$(dirname "$0")"

./preflight.sh run-llm
./install-python.sh ../.tools/llm llm-requirements.txt
