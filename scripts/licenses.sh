#!/bin/sh
# Lists the licenses of all third-party software in the programs and images.
#   scripts/licenses.sh             writes docs/third-party.tsv; fails if a license is not accepted
#   scripts/licenses.sh --check     fails if docs/third-party.tsv is not up to date
#   scripts/licenses.sh --texts F   writes the license texts of the Go modules, which must be distributed with
#                                   programs, to the new folder F
# Debian's packages include their own license texts: in images, see /usr/share/doc/*/copyright.
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}
# Always build the list for Linux servers, so that the result is the same on every machine.
export GOOS=linux GOARCH=amd64 CGO_ENABLED=0

work=$PWD/.tools/licenses
tool=$work/go-licenses
mkdir -p "$work"
(unset GOOS GOARCH; "$GO" build -C scripts/tools/licenses -o "$tool" github.com/google/go-licenses/v2)

programs='./cmd/... ./functions/...'
# These licenses allow distribution with a notice. Think before you add another.
accepted='Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT,MPL-2.0,Unlicense'

# quiet COMMAND…: runs the command and hides its warnings about license URLs that it cannot find.
quiet() {
	"$@" 2>"$work/log" || { grep -v 'Error discovering license URL' "$work/log" >&2; return 1; }
}

if [ "${1:-}" = --texts ]; then
	# shellcheck disable=SC2086 # several words
	quiet "$tool" save $programs --ignore cutroom --save_path "${2:?a folder}"
	exit
fi

# shellcheck disable=SC2086
quiet "$tool" check $programs --ignore cutroom --allowed_licenses "$accepted"
printf '{{range .}}{{.Name}}\t{{.Version}}\t{{.LicenseName}}\n{{end}}' >"$work/template"
# shellcheck disable=SC2086
quiet "$tool" report $programs --ignore cutroom --template "$work/template" >"$work/go.tsv"

if [ ! -x "$work/python/bin/pip" ]; then
	python3 -m venv "$work/python"
	# Older versions of pip do not report the newer license field of a package.
	"$work/python/bin/pip" install --quiet --disable-pip-version-check pip==26.3
fi
# Only metadata is needed, so nothing is installed. This machine must have the platform of the engine's image.
"$work/python/bin/pip" install --quiet --disable-pip-version-check --dry-run --ignore-installed --no-deps \
	--report "$work/python.json" --requirement gpu/requirements.txt

python3 scripts/licenses.py "$work/go.tsv" "$work/python.json" >"$work/third-party.tsv"
if [ "${1:-}" = --check ]; then
	cmp -s "$work/third-party.tsv" docs/third-party.tsv || {
		echo "docs/third-party.tsv is not up to date: run scripts/licenses.sh" >&2
		diff -u docs/third-party.tsv "$work/third-party.tsv" | sed 1,2d | head -20 >&2
		exit 1
	}
	exit
fi
cp "$work/third-party.tsv" docs/third-party.tsv
