#!/bin/sh
# install-npm.sh FOLDER SOURCE: installs npm packages in a folder, as SOURCE's package.json and lock file say, unless
# they are already installed.
set -eu

if cmp -s "$2/package-lock.json" "$1/made-of"; then
	exit
fi
echo "Installing the packages of $2." >&2
mkdir -p "$1"
cp "$2/package.json" "$2/package-lock.json" "$1"
npm ci --prefix "$1" --ignore-scripts --no-audit --no-fund --loglevel error >&2
cp "$2/package-lock.json" "$1/made-of"
