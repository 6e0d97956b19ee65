#!/bin/sh
# unseen.sh [FOLDER…]: prints a digest of those dependencies of a test that Go does not know, so that Go's test cache
# can be trusted: see test.sh. Go itself sees the code that a test is compiled from, and the files and variables that
# the test reads. It does not see the inputs and the code of programs that a test starts.
#
# The digest covers every file of the repository and its executable bit, the machine's programs, the tools from
# install-test-tools.sh, and the variables that programs read. It excludes Go test files, which belong to one package
# each, documentation, which no program reads, and the named folders: "." means all of them. Outside a Git repository
# every digest is different.
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
		true # a file may be gone
	git rev-parse --git-dir 2>&1 || echo "$$ $(date)"
	cat .tools/*/made-of 2>&1 || true # before the first tools are installed
	"${GO:-go}" version
	uname -srm
	env | LC_ALL=C sort | grep -E '^(AWS_|CUTROOM_|LANG|LC_|LD_|NODE_|PYTHON|TZ=|[^=]*_(PROXY|proxy)=)' || true
	# Installed software: the version of every package (dpkg only), and the size and time of each
	# program that the tests start.
	if [ -e /var/lib/dpkg/status ]; then
		cksum /var/lib/dpkg/status
	fi
	for program in ffmpeg ffprobe chromium chromium-headless-shell node python3 git make curl strace openssl; do
		path=$(command -v "$program") || continue
		echo "$path"
		ls -lL "$path"
	done
} | cksum | tr ' ' -
