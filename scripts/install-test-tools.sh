#!/bin/sh
# Installs what only the tests need, where it is missing: a browser, and the
# Python programs of requirements.txt in .tools/python.
set -eu
cd "$(dirname "$0")"

if ! command -v chromium >/dev/null 2>&1; then
	./install-package.sh chromium apt-get=chromium dnf=chromium pacman=chromium apk=chromium brew="--cask chromium"
fi

python=../.tools/python
wanted=$(python3 --version; cat requirements.txt)
if [ "$(cat "$python/made-of" 2>/dev/null)" = "$wanted" ]; then
	exit 0
fi
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
	./install-package.sh python3-venv apt-get=python3-venv
fi
echo "Installing the Python programs that the tests need." >&2
python3 -m venv --clear "$python"
"$python/bin/pip" install --quiet --disable-pip-version-check --requirement requirements.txt
printf '%s\n' "$wanted" >"$python/made-of"
