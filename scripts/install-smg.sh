#!/bin/sh
# Installs smg, a router for model servers, in .tools/smg: a peer of the gateway in
# `make bench`, which does without it where it cannot be had.
set -eu
cd "$(dirname "$0")/.."

python3 -m venv --clear .tools/smg
if ! .tools/smg/bin/pip install --quiet --disable-pip-version-check smg==1.13.0; then
	echo "smg cannot be installed here; the benchmarks go without it." >&2
fi
