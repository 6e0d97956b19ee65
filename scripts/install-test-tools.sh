#!/bin/sh
# Installs what only the tests need, where it is missing: the system's packages that
# preflight.sh names for them, a browser among them, the Python programs of
# requirements.txt in .tools/python, of requirements-clients.txt in .tools/clients, of
# requirements-template.txt in .tools/template, of gpu/requirements-test.txt in
# .tools/engine and of requirements-audit.txt in .tools/audit, the command line of AWS
# CDK, in .tools/node the client library for Node with a Node that it runs on,
# in .tools/console what drives the browser and checks its pages, and in
# .tools/generators what makes clients of an OpenAPI document.
set -eu
cd "$(dirname "$0")"

# Python is asked for its version below, so it has to be there by now.
./preflight.sh test

./install-python.sh ../.tools/python requirements.txt
./install-python.sh ../.tools/template requirements-template.txt
./install-python.sh ../.tools/engine ../gpu/requirements-test.txt
./install-python.sh ../.tools/audit requirements-audit.txt
./install-python.sh ../.tools/clients requirements-clients.txt

./install-cdk.sh

# packages FOLDER SOURCE: packages of npm, as a package.json and its lock say.
packages() {
	if cmp -s "$2/package-lock.json" "$1/made-of"; then
		return
	fi
	echo "Installing the packages of $2." >&2
	mkdir -p "$1"
	cp "$2/package.json" "$2/package-lock.json" "$1"
	npm ci --prefix "$1" --ignore-scripts --no-audit --no-fund --loglevel error >&2
	cp "$2/package-lock.json" "$1/made-of"
}
packages ../.tools/node ../cmd/cutroom/testdata/openai
packages ../.tools/console ../cmd/cutroom/consoletest/testdata
packages ../.tools/generators ../cmd/cutroom/testdata/clients
