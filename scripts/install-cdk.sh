#!/bin/sh
# Installs the AWS CDK command line in .tools/cdk if it is missing.
set -eu
cd "$(dirname "$0")/.."

cmp -s package-lock.json .tools/cdk/made-of || scripts/preflight.sh synth
scripts/install-npm.sh .tools/cdk .
