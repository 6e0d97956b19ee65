#!/bin/sh
# Lints what no compiler checks: Go by .golangci.yml, shell scripts by .shellcheckrc,
# the JavaScript of pages and tests by scripts/tools/lint/eslint.config.mjs. Its tools
# are pinned in scripts/tools/lint and installed into .tools/lint.
#   scripts/lint.sh [go] [shell] [js]   all of them without a word
set -eu
cd "$(dirname "$0")/.."
. scripts/stages.sh
source=scripts/tools/lint
tools=$PWD/.tools/lint
mkdir -p "$tools"

# golangci_source prints the folder of golangci-lint's source with linters.go.txt in place of
# its own list of linters, which spares a third of what there is to compile.
golangci_source() {
	copy=$tools/source-$(cat "$source/go.sum" "$source/linters.go.txt" | cksum | cut -d ' ' -f 1)
	if [ ! -d "$copy" ]; then
		rm -rf "$tools"/source-*
		"$GO" -C "$source" mod download "$1"
		original=$("$GO" -C "$source" list -m -f '{{.Dir}}' "$1")
		mkdir "$copy.$$"
		for part in go.mod cmd internal jsonschema pkg; do
			cp -R "$original/$part" "$copy.$$"
		done
		chmod -R u+w "$copy.$$"
		cp "$source/linters.go.txt" "$copy.$$/pkg/lint/lintersdb/builder_linter.go"
		mv "$copy.$$" "$copy"
	fi
	echo "$copy"
}

lint_go() {
	golangci=github.com/golangci/golangci-lint/v2
	copy=$(golangci_source "$golangci")
	cp "$source/go.mod" "$tools/golangci.mod"
	cp "$source/go.sum" "$tools/golangci.sum"
	"$GO" mod edit "-replace=$golangci=$copy" "$tools/golangci.mod"
	# Built with the flags of the tests, it needs no standard library of its own.
	released build -C "$source" "-modfile=$tools/golangci.mod" -o "$tools/golangci-lint" "$golangci/cmd/golangci-lint"
	# With the flags of the tests, what those compile need not be compiled again. Checks
	# of two copies of the repository may run at once.
	CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath $undebugged" "$tools/golangci-lint" run --allow-parallel-runners ./...
}

lint_shell() {
	if ! cmp -s "$source/requirements.txt" "$tools/python/made-of"; then
		python3 -m venv --clear "$tools/python"
		"$tools/python/bin/pip" install --quiet --disable-pip-version-check --requirement "$source/requirements.txt"
		cp "$source/requirements.txt" "$tools/python/made-of"
	fi
	git ls-files -z '*.sh' .ci/run | xargs -0 "$tools/python/bin/shellcheck"
}

lint_js() {
	if ! cmp -s "$source/package-lock.json" "$tools/made-of"; then
		cp "$source/package.json" "$source/package-lock.json" "$tools"
		(cd "$tools" && npm ci --ignore-scripts --no-audit --no-fund --loglevel error >&2)
		cp "$source/package-lock.json" "$tools/made-of"
	fi
	# The rules' imports are found beside them.
	cp "$source/eslint.config.mjs" "$tools"
	git ls-files -z '*.js' '*.mjs' ':!scripts' |
		xargs -0 "$tools/node_modules/.bin/eslint" --config "$tools/eslint.config.mjs"
}

[ $# -gt 0 ] || set -- go shell js
for part in "$@"; do
	case $part in
	go | shell | js) "lint_$part" ;;
	*) echo "lint.sh: $part is not one of go, shell or js" >&2; exit 2 ;;
	esac
done
