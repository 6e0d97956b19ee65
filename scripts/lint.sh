#!/bin/sh
# Lints the repository: its format, Go with .golangci.yml, shell scripts with .shellcheckrc, the JavaScript of pages
# and tests with scripts/tools/lint/eslint.config.mjs, the Dockerfiles, and the engine server's Python. The linters
# are pinned and installed into .tools.
#   scripts/lint.sh [format] [prose] [go] [shell] [js] [docker] [python] [workflows]   all if none is named
set -eu
cd "$(dirname "$0")/.."
. scripts/stages.sh
source=scripts/tools/lint
tools=$PWD/.tools/lint
mkdir -p "$tools"

lint_format() {
	unformatted=$("$("$GO" env GOROOT)/bin/gofmt" -l cmd functions infra shared bench docs scripts)
	[ -z "$unformatted" ] || { echo "not gofmt-ed: $unformatted" >&2; return 1; }
}

lint_prose() { python3 scripts/prose.py; }

# golangci_source prints the folder of a copy of golangci-lint's source, in which linters.go.txt replaces the list of
# linters. Compiling only these linters saves a third of the time.
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

# Build and run golangci-lint with the tests' build flags, so that it can use the same Go build cache.
lint_go() {
	golangci=github.com/golangci/golangci-lint/v2
	copy=$(golangci_source "$golangci")
	cp "$source/go.mod" "$tools/golangci.mod"
	cp "$source/go.sum" "$tools/golangci.sum"
	"$GO" mod edit "-replace=$golangci=$copy" "$tools/golangci.mod"
	released build -C "$source" "-modfile=$tools/golangci.mod" -o "$tools/golangci-lint" "$golangci/cmd/golangci-lint"
	# Allow two copies of the repository to be linted at the same time.
	CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath $undebugged" "$tools/golangci-lint" run --allow-parallel-runners ./... ||
		return 1 # the shell ignores failures here, except for the last command
	# golangci-lint skips these tests because of their build tags, so vet them.
	released vet -tags docker,nginx ./scripts/packaging/... ./functions ./bench
}

# python_tools installs the linters that are Python packages.
python_tools() { scripts/install-python.sh .tools/lint/python "$source/requirements.txt"; }

lint_shell() {
	python_tools
	git ls-files -z '*.sh' .ci/run | xargs -0 "$tools/python/bin/shellcheck"
}

lint_docker() {
	python_tools
	"$tools/python/bin/hadolint" Dockerfile gpu/Dockerfile
}

lint_workflows() {
	[ -x "$tools/actionlint-1.7.7" ] || {
		GOBIN=$tools "$GO" install github.com/rhysd/actionlint/cmd/actionlint@v1.7.7
		mv "$tools/actionlint" "$tools/actionlint-1.7.7"
	}
	"$tools/actionlint-1.7.7" -shellcheck "$tools/python/bin/shellcheck" .github/workflows/*.yml
}

lint_js() {
	if ! cmp -s "$source/package-lock.json" "$tools/made-of"; then
		cp "$source/package.json" "$source/package-lock.json" "$tools"
		(cd "$tools" && npm ci --ignore-scripts --no-audit --no-fund --loglevel error >&2)
		cp "$source/package-lock.json" "$tools/made-of"
	fi
	# eslint resolves the imports of its configuration from the configuration's folder.
	cp "$source/eslint.config.mjs" "$tools"
	git ls-files -z '*.js' '*.mjs' ':!scripts' |
		xargs -0 "$tools/node_modules/.bin/eslint" --config "$tools/eslint.config.mjs"
}

# mypy needs the packages that the code imports. They are installed with the tests' packages.
lint_python() {
	scripts/install-python.sh .tools/engine gpu/requirements-test.txt
	(
		cd gpu
		../.tools/engine/bin/ruff check --quiet --no-cache . &&
		../.tools/engine/bin/ruff format --check --quiet --no-cache . &&
		../.tools/engine/bin/mypy --cache-dir ../.tools/engine/mypy
	)
}

[ $# -gt 0 ] || set -- format prose go shell js docker python workflows
for part in "$@"; do
	case $part in
	format | prose | go | shell | js | docker | python | workflows) took "lint $part" "lint_$part" ;;
	*) echo "lint.sh: unknown part $part, must be format, prose, go, shell, js, docker, python or workflows" >&2; exit 2 ;;
	esac
done
