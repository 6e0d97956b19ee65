#!/bin/sh
# install-python.sh FOLDER REQUIREMENTS: installs the Python programs of a file of
# requirements in a folder of their own, unless they are there already.
set -eu

folder=$1
requirements=$2
wanted=$(python3 --version; cat "$requirements")
if [ "$(cat "$folder/made-of" 2>/dev/null)" = "$wanted" ]; then
	exit 0
fi
echo "Installing the Python programs of $(basename "$requirements")." >&2
python3 -m venv --clear "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
printf '%s\n' "$wanted" >"$folder/made-of"
