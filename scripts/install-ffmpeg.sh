#!/bin/sh
# Installs ffmpeg where it is missing, by the system's package manager. It shows
# the command before it runs it and never asks a question.
set -eu

if command -v ffmpeg >/dev/null 2>&1 && command -v ffprobe >/dev/null 2>&1; then
	exit 0
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
	as_root="sudo -n"
fi
if command -v apt-get >/dev/null 2>&1; then
	command="$as_root sh -c 'apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ffmpeg'"
elif command -v dnf >/dev/null 2>&1; then
	command="$as_root dnf install -y ffmpeg"
elif command -v pacman >/dev/null 2>&1; then
	command="$as_root pacman -S --noconfirm ffmpeg"
elif command -v apk >/dev/null 2>&1; then
	command="$as_root apk add ffmpeg"
elif command -v brew >/dev/null 2>&1; then
	# Homebrew's plain ffmpeg lacks the filter that HDR clips need.
	command="brew install ffmpeg-full && brew link ffmpeg-full"
else
	echo "ffmpeg is missing, and no package manager was found: install ffmpeg (with ffprobe) and try again." >&2
	exit 1
fi

echo "ffmpeg is missing. Installing it:" >&2
echo "    $command" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! sh -c "$command" >"$log" 2>&1 </dev/null; then
	tail -n 20 "$log" >&2
	echo "That failed. Run the command above yourself and try again." >&2
	exit 1
fi
ffmpeg -version | head -n 1 >&2
