#!/bin/sh
# build-functions.sh ARCHITECTURE FOLDER: builds all functions for Lambda, each in its own folder. The architecture is
# arm64 or x86_64. Builds are reproducible, so a deployment changes only those functions whose code has changed.
# FUNCTIONS_OS is the operating system, as Go calls it; the default is Lambda's, linux.
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}
case $1 in
arm64) architecture=arm64 ;;
x86_64) architecture=amd64 ;;
*)
	echo "unknown architecture: $1" >&2
	exit 1
	;;
esac
folder=$2

# Skip linking if a program has not changed, because linking takes most of the time. Concurrent builds use separate
# folders; the last one to finish is kept.
kept=$folder/.built
[ -e "$folder" ] || echo "Building the functions for $1. The first time takes a minute." >&2
mkdir -p "$folder"
built=$(mktemp -d "$folder/built-XXXXXX")
trap 'rm -rf "$built"' EXIT
mv "$kept" "$built/programs" 2>/dev/null || mkdir "$built/programs"
CGO_ENABLED=0 GOOS=${FUNCTIONS_OS:-linux} GOARCH=$architecture "$GO" build -buildvcs=false -tags lambda.norpc \
	-trimpath -ldflags "-s -w" -o "$built/programs/" ./functions/...
for program in "$built"/programs/*; do
	[ -f "$program" ] || continue
	name=$(basename "$program")
	mkdir -p "$folder/$name"
	cmp -s "$program" "$folder/$name/bootstrap" && continue
	cp "$program" "$built/bootstrap"
	mv "$built/bootstrap" "$folder/$name/bootstrap"
done
# Put the Content Credentials library into the folder of the only function that loads it, because that folder is
# searched first. Builds for a system other than Linux are for tests on this machine.
case ${FUNCTIONS_OS:-linux} in
linux) system=Linux ;;
*) system=$(uname) ;;
esac
scripts/install-c2pa.sh "$folder/c2pa" "$architecture" "$system"
[ -e "$kept" ] || mv "$built/programs" "$kept"
