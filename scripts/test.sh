#!/bin/sh
# All checks and tests. A tool that is missing is a failure, never a skip.
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}

for tool in "$GO" gofmt gcc ffmpeg ffprobe curl python3; do
	command -v "$tool" >/dev/null 2>&1 || { echo "missing tool: $tool" >&2; exit 1; }
done

unformatted=$(gofmt -l cmd shared bench testdata)
if [ -n "$unformatted" ]; then
	echo "not gofmt-ed:" >&2
	echo "$unformatted" >&2
	exit 1
fi
"$GO" vet ./...
"$GO" test -race -timeout 15m ./...
