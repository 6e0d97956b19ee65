#!/bin/sh
# module-licenses.sh FOLDER: copies the licenses and notices of the Go modules in the programs below cmd, as their
# terms require for distributing the programs. Each module gets a folder named after its path. It fails if a module
# has no license. (scripts/licenses.sh --texts does the same for the functions too, with another tool.)
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
