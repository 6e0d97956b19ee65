#!/bin/sh
# unseen.sh [FOLDER…]: prints a digest of those dependencies of tests that Go does not track, so that Go's test cache
# can be trusted: see test.sh. Go itself notices changes of the code that a test is compiled from, and of the files
# and variables that the test reads. It does not notice changes of the inputs and the code of programs that a test
# starts.
#
# The digest covers every file of the repository and whether it is executable, the machine's programs, the tools from
# install-test-tools.sh, and the variables that programs read. It does not cover Go test files (each affects only its
# own package), documentation (no program reads it), and the given folders ("." means all). Outside of a Git
# repository, every digest is different.
set -eu
cd "$(dirname "$0")/.."

for folder; do
	set -- "$@" ":!$folder"
	shift
done
{
	# shellcheck disable=SC2016 # sh expands it
	git ls-files --cached --others --exclude-standard -z -- . ':!*_test.go' ':!docs/*.md' ':(top,glob,exclude)*.md' "$@" |
		xargs -0 sh -c 'cksum "$@"; for file; do [ ! -x "$file" ] || echo "$file runs"; done' sh 2>&1 ||
		true # a file may have been deleted
	git rev-parse --git-dir 2>&1 || echo "$$ $(date)"
	cat .tools/*/made-of 2>&1 || true # missing before the first tool is installed
	"${GO:-go}" version
	uname -srm
	env | LC_ALL=C sort | grep -E '^(AWS_|CUTROOM_|LANG|LC_|LD_|NODE_|PYTHON|TZ=|[^=]*_(PROXY|proxy)=)' || true
	# Installed software: all package versions if dpkg is used, and the size and date of each program that the tests
	# start.
	if [ -e /var/lib/dpkg/status ]; then
		cksum /var/lib/dpkg/status
	fi
	for program in ffmpeg ffprobe chromium chromium-headless-shell node python3 git make curl strace openssl; do
		path=$(command -v "$program") || continue
		echo "$path"
		ls -lL "$path"
	done
} | cksum | tr ' ' -
