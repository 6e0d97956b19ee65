#!/bin/sh
# Installs the packages of the engine server and of its tests in .tools/gpu. Packages that already have the right
# version are kept. PyTorch with CUDA takes some minutes and 6 GB.
set -eu
cd "$(dirname "$0")"

./preflight.sh run-gpu
environment=../.tools/gpu
wanted=$(python3 --version; cat ../gpu/requirements.txt ../gpu/requirements-test.txt)
if [ "$(cat "$environment/made-of" 2>/dev/null)" = "$wanted" ]; then
	exit 0
fi
echo "Installing PyTorch and diffusers. This takes some minutes and 6 GB." >&2
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check \
	--requirement ../gpu/requirements.txt --requirement ../gpu/requirements-test.txt
printf '%s\n' "$wanted" >"$environment/made-of"
