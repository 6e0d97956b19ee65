#!/bin/sh
# Third-party licenses of the programs' and images' contents.
#   scripts/licenses.sh             writes docs/third-party.tsv, and fails on a license
#                                   that is not accepted
#   scripts/licenses.sh --check     fails if docs/third-party.tsv is not up to date
#   scripts/licenses.sh --texts F   puts the texts of the Go modules' licenses into the
#                                   new folder F, to be shipped with programs
# Debian's packages bring their own into images, in /usr/share/doc/*/copyright.
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}
# For servers on Linux, so the result is the same on every machine.
export GOOS=linux GOARCH=amd64 CGO_ENABLED=0

work=$PWD/.tools/licenses
tool=$work/go-licenses
mkdir -p "$work"
(unset GOOS GOARCH; "$GO" build -C scripts/tools/licenses -o "$tool" github.com/google/go-licenses/v2)

programs='./cmd/... ./functions/...'
# Licenses that allow distribution with a notice. Adding one needs a decision.
accepted='Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT,MPL-2.0,Unlicense'

# quiet COMMAND…: hides the tool's warnings about web addresses that it cannot find.
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
	# An older pip does not report the current field for a package's license.
	"$work/python/bin/pip" install --quiet --disable-pip-version-check pip==26.3
fi
# This needs only metadata, so nothing is installed. It assumes that this machine has the platform of the engine's
# image.
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
