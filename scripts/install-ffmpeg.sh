#!/bin/sh
# Installs ffmpeg where it is missing.
set -eu

if command -v ffmpeg >/dev/null 2>&1 && command -v ffprobe >/dev/null 2>&1; then
	exit 0
fi
# Homebrew's plain ffmpeg lacks the filter that HDR clips need.
"$(dirname "$0")/install-package.sh" ffmpeg apt-get=ffmpeg dnf=ffmpeg pacman=ffmpeg apk=ffmpeg \
	brew="ffmpeg-full && brew link ffmpeg-full"
ffmpeg -version | head -n 1 >&2
