#!/bin/sh
# test-update.sh VERSION: tests an update. It deploys VERSION, a git tag or commit, to the local AWS, and then updates
# the deployment to this working tree, while clients submit jobs and a worker runs them. The default is the newest
# tag. The checkout of VERSION is removed at the end.
set -eu
cd "$(dirname "$0")/.."
version=${1:-$(git describe --tags --abbrev=0)}
scripts/install-test-tools.sh

folder=$(mktemp -d)
trap 'git worktree remove --force "$folder/from" 2>/dev/null || true; rm -rf "$folder"' EXIT
git worktree add --quiet --detach "$folder/from" "$version"
# Copy the tools that its build would otherwise download.
mkdir -p "$folder/from/.tools"
for tool in c2pa cdk; do
	[ ! -e ".tools/$tool" ] || cp -R ".tools/$tool" "$folder/from/.tools/"
done
"${GO:-go}" test -count=1 -v -timeout 30m ./infra/deployment -run 'TestUpdateLosesNothing$' -from "$folder/from"
