#!/bin/sh
# check.sh: runs the checks for every change, in a few minutes: the linters, and the tests that need no local AWS, no
# browser and no media. `make test` runs all tests.
set -eu
cd "$(dirname "$0")/.."
. scripts/stages.sh

scripts/lint.sh
quick=$("$GO" list ./docs/... ./scripts/... ./shared/... |
	grep -v -e /shared/engine/ -e /shared/adapter/ -e /shared/testkit/ -e /domain/media)
# The slowest packages start first. Four run at a time, because some of them mostly wait.
# shellcheck disable=SC2086 # several packages
took "go test" released test -vet=off -timeout "$limit" -p 4 ./shared/adapter/sqlite/... ./shared/service/... \
	./shared/adapter/diskblob/... $quick
