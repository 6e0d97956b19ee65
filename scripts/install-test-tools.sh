#!/bin/sh
# Installs the tools that only the tests need, if they are missing: system packages (see preflight.sh), and in
# folders below .tools
#   python, template, engine, c2papython   Python programs
#   clients, typescript                    the tools that build the client packages
#   c2pa                                   the library for Content Credentials
#   cdk                                    the AWS CDK command line
#   node                                   OpenAI's client library for Node
#   console                                the programs that drive a browser and check the console's pages
#   livevideo                              LiveKit's client library for browsers
#   generators                             a linter and a client generator for OpenAPI documents
set -eu
cd "$(dirname "$0")"

# Python must be installed before the steps below.
./preflight.sh test

# Chromium's headless shell takes half as much processor time as the browser. If there is no package for it, or
# installing it needs a password, the tests use the browser.
if ! command -v chromium-headless-shell >/dev/null 2>&1 && { [ "$(id -u)" -eq 0 ] || sudo -n true; } >/dev/null 2>&1 &&
	apt-cache madison chromium-headless-shell 2>/dev/null | grep -q .; then
	./install-package.sh "Chromium's headless shell" apt-get=chromium-headless-shell ||
		echo "The tests take the whole browser, which is slower." >&2
fi

./install-python.sh ../.tools/python requirements.txt
./install-python.sh ../.tools/template requirements-template.txt
./install-python.sh ../.tools/engine ../gpu/requirements-test.txt
./install-python.sh ../.tools/c2papython requirements-c2pa-test.txt
./install-clients.sh
./install-c2pa.sh .tools/c2pa

./install-cdk.sh

./install-npm.sh ../.tools/node ../cmd/cutroom/testdata/openai
./install-npm.sh ../.tools/console ../cmd/cutroom/consoletest/testdata
./install-npm.sh ../.tools/livevideo ../cmd/cutroom/testdata/livevideo
./install-npm.sh ../.tools/generators ../cmd/cutroom/testdata/clients
