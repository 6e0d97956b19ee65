#!/bin/sh
# Installs llama.cpp's server in .tools/llm if it is missing. If PyPI has no wheel of xllamacpp for
# the system (musl), it is compiled: see that package's page.
set -eu
cd "$(dirname "$0")"

./preflight.sh run-llm
./install-python.sh ../.tools/llm llm-requirements.txt
