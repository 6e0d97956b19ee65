#!/bin/sh
# Installs the AWS CDK command line in .tools/cdk if it is missing.
set -eu
cd "$(dirname "$0")"

folder=../.tools/cdk
packages=../infra
if cmp -s "$packages/package-lock.json" "$folder/made-of"; then
	exit 0
fi
./preflight.sh synth
echo "Installing the command line of AWS CDK." >&2
mkdir -p "$folder"
cp "$packages/package.json" "$packages/package-lock.json" "$folder"
npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel error >&2
cp "$packages/package-lock.json" "$folder/made-of"
