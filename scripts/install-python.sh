#!/bin/sh
# install-python.sh FOLDER REQUIREMENTS: installs the Python programs of a requirements file in a separate folder, if
# they are missing. The file must also list their dependencies. All installations share one pip, in .tools/pip,
# because unpacking pip takes longer than most of them.
set -eu

folder=$1
requirements=$2
pip=$(dirname "$0")/../.tools/pip
wanted=$(python3 --version; cat "$requirements")
if [ "$(cat "$folder/made-of" 2>/dev/null)" = "$wanted" ]; then
	exit 0
fi
echo "Installing the Python programs of $(basename "$requirements")." >&2
if [ "$(cat "$pip/made-of" 2>/dev/null)" != "$(python3 --version)" ]; then
	python3 -m venv --clear "$pip"
	python3 --version >"$pip/made-of"
fi
python3 -m venv --clear --without-pip "$folder"
"$pip/bin/python" -m pip --python "$folder/bin/python" install --no-compile --no-deps --quiet --disable-pip-version-check --requirement "$requirements"
printf '%s\n' "$wanted" >"$folder/made-of"
