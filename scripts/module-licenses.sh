#!/bin/sh
# module-licenses.sh FOLDER: copies the licences and notices of the Go modules that the
# programs below cmd are made of, each module's into a folder of its path, as they ask
# for where programs are passed on. It fails where a module has none.
# (scripts/licenses.sh --texts does the same by a tool of its own, for functions too.)
set -eu
out=$1
cd "$(dirname "$0")/.."
GO=${GO:-go}

"$GO" list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' ./cmd/... | sort -u |
	while read -r module folder; do
		mkdir -p "$out/$module"
		find "$folder" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'unlicense*' \) \
			-exec cp {} "$out/$module/" \;
		[ -n "$(ls "$out/$module")" ] || { echo "$module has no licence." >&2; exit 1; }
	done
