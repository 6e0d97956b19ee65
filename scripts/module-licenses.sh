#!/bin/sh
# module-licenses.sh FOLDER: copies the licenses and notices of all Go modules that are in the programs below cmd,
# because their terms require that for distribution. Each module gets a folder with its path. The script fails if a
# module has no license. (scripts/licenses.sh --texts uses another tool, and covers the functions too.)
set -eu
out=$1
cd "$(dirname "$0")/.."
GO=${GO:-go}

"$GO" list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' ./cmd/... | sort -u |
	while read -r module folder; do
		mkdir -p "$out/$module"
		find "$folder" -maxdepth 1 -type f \
			\( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'unlicense*' \) \
			-exec cp {} "$out/$module/" \;
		[ -n "$(ls "$out/$module")" ] || { echo "$module has no license." >&2; exit 1; }
	done
