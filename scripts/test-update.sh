#!/bin/sh
# test-update.sh VERSION: deploys a git tag or commit to the local AWS, and updates it to this
# working tree while its clients submit jobs and its worker runs them. The default VERSION is the
# newest tag. Its checkout is removed at the end.
set -eu
cd "$(dirname "$0")/.."
version=${1:-$(git describe --tags --abbrev=0)}
scripts/install-test-tools.sh

folder=$(mktemp -d)
trap 'git worktree remove --force "$folder/from" 2>/dev/null || true; rm -rf "$folder"' EXIT
git worktree add --quiet --detach "$folder/from" "$version"
# Most downloads of its build are already here.
mkdir -p "$folder/from/.tools"
for tool in c2pa cdk; do
	[ ! -e ".tools/$tool" ] || cp -R ".tools/$tool" "$folder/from/.tools/"
done
"${GO:-go}" test -count=1 -v -timeout 30m ./infra/deployment -run 'TestUpdateLosesNothing$' -from "$folder/from"
