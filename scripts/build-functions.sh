#!/bin/sh
# build-functions.sh ARCHITECTURE FOLDER: builds every function for Lambda, each in a separate folder. The
# architecture is arm64 or x86_64. The same source gives the same bytes, so a deploy changes only functions whose code
# changed. FUNCTIONS_OS is the system, in Go's words: Lambda's is linux.
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

# An unchanged program is not linked again, because linking takes most of the time. Parallel builds
# use separate folders, and only the last one is kept.
kept=$folder/.built
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
# The Content Credentials library goes next to the only program that loads it: that folder is
# searched first. A folder for a system other than Linux is for testing functions on this machine.
case ${FUNCTIONS_OS:-linux} in
linux) system=Linux ;;
*) system=$(uname) ;;
esac
scripts/install-c2pa.sh "$folder/c2pa" "$architecture" "$system"
[ -e "$kept" ] || mv "$built/programs" "$kept"
