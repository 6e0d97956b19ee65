#!/bin/sh
# install-c2pa.sh [FOLDER [ARCHITECTURE [SYSTEM]]]: installs libc2pa_c, which writes and verifies Content Credentials,
# into a folder if it is missing. The default folder is bin, where the program looks for it. ARCHITECTURE is Debian's
# name, such as arm64, for Linux on another processor. SYSTEM is what uname prints, such as Linux. The library is
# extracted from its Python package, which is pinned by hashes. This needs Python with pip or venv.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-bin}
requirements=scripts/requirements-c2pa.txt

system=${3:-$(uname)}
architecture=${2:-$(uname -m)}
case $system/$architecture in
Linux/x86_64 | Linux/amd64) platform=manylinux_2_28_x86_64 library=libc2pa_c.so ;;
Linux/aarch64 | Linux/arm64) platform=manylinux_2_28_aarch64 library=libc2pa_c.so ;;
Darwin/arm64) platform=macosx_11_0_arm64 library=libc2pa_c.dylib ;;
Darwin/x86_64 | Darwin/amd64) platform=macosx_10_9_x86_64 library=libc2pa_c.dylib ;;
*)
	echo "No libc2pa_c exists for $system on $architecture: build c2pa-rs, and set CUTROOM_C2PA_LIBRARY." >&2
	exit 1
	;;
esac
wanted="$platform $(cat "$requirements")"
if [ -s "$folder/$library" ] && [ "$(cat "$folder/libc2pa_c.made-of" 2>/dev/null)" = "$wanted" ]; then
	exit 0
fi
for kept in bin .tools/c2pa; do
	if [ -s "$kept/$library" ] && [ "$(cat "$kept/libc2pa_c.made-of" 2>/dev/null)" = "$wanted" ]; then
		mkdir -p "$folder"
		cp -p "$kept/$library" "$folder/$library.new"
		mv "$folder/$library.new" "$folder/$library"
		cp "$kept/libc2pa_c.made-of" "$folder/"
		exit 0
	fi
done
echo "Installing libc2pa_c, which writes Content Credentials." >&2
mkdir -p "$folder"
work=$(mktemp -d "$folder/c2pa.XXXXXX")
trap 'rm -rf "$work"' EXIT
if ! command -v python3 >/dev/null 2>&1; then
	echo "It is part of a Python package, so this needs Python with pip or venv." >&2
	exit 1
fi
pip="python3 -m pip"
if ! $pip --version >/dev/null 2>&1; then
	python3 -m venv "$work/pip"
	pip="$work/pip/bin/python -m pip"
fi
$pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: \
	--platform "$platform" --dest "$work" --requirement "$requirements"
python3 -m zipfile -e "$work"/c2pa_python-*.whl "$work/package"
# Move the file into place only when it is complete.
chmod 755 "$work/package/c2pa/libs/$library"
mv "$work/package/c2pa/libs/$library" "$folder/$library"
printf '%s\n' "$wanted" >"$folder/libc2pa_c.made-of"
