#!/bin/sh
# build-functions.sh ARCHITECTURE FOLDER: builds every function for Lambda, each in
# a folder of its own. The architecture is arm64 or x86_64. The same source gives
# the same bytes, so that a deploy changes no function whose code did not change.
# FUNCTIONS_OS is the system, in Go's words: Lambda's is linux.
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

mkdir -p "$folder"
built=$(mktemp -d "$folder/built-XXXXXX")
trap 'rm -rf "$built"' EXIT
CGO_ENABLED=0 GOOS=${FUNCTIONS_OS:-linux} GOARCH=$architecture "$GO" build -buildvcs=false -tags lambda.norpc \
	-trimpath -ldflags "-s -w" -o "$built/" ./functions/...
for program in "$built"/*; do
	name=$(basename "$program")
	mkdir -p "$folder/$name"
	mv "$program" "$folder/$name/bootstrap"
done
