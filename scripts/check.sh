#!/bin/sh
# The checks for every change, in a few minutes: format, lint, which vets too, and the
# tests of the library that need no local AWS, no browser and no media. `make test` is
# the whole.
set -eu
cd "$(dirname "$0")/.."
. scripts/stages.sh

took gofmt formatted
took lint scripts/lint.sh
quick=$("$GO" list ./docs/... ./scripts/... ./shared/... |
	grep -v -e /shared/engine/ -e /shared/adapter/ -e /shared/testkit/ -e /domain/media)
# What takes longest begins first. Four packages at once, as some mostly wait.
# shellcheck disable=SC2086 # a list of packages
took "go test" released test -vet=off -timeout 60m -p 4 ./shared/adapter/sqlite/... ./shared/service/... \
	./shared/adapter/diskblob/... $quick
