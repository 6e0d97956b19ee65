#!/bin/sh
# Runs the CDK app, infra, for the AWS CDK command line (cdk.json). The app builds the functions itself.
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}
if [ ! -x bin/infra ]; then
	scripts/preflight.sh synth
	echo "Compiling the CDK app. The first time takes a few minutes." >&2
fi
"$GO" build -o bin/infra ./infra
exec bin/infra
