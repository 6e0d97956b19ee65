#!/bin/sh
# Installs the tools that only the tests need, if they are missing: the system packages that
# preflight.sh names, and below .tools
#   python, template, engine, c2papython   Python programs, by the requirements below
#   clients, typescript                    build tools of the client packages
#   c2pa                                   the library of Content Credentials
#   cdk                                    the command line of AWS CDK
#   node                                   OpenAI's client library, with its Node
#   console                                the browser's driver and checks of its pages
#   livevideo                              the client library of live video for browsers
#   generators                             a linter of OpenAPI documents, and a generator
set -eu
cd "$(dirname "$0")"

# Python must be installed before the lines below.
./preflight.sh test

# Chromium's headless shell takes half the browser's processor time. If it is not a
# package, or needs a password to install, the tests use the browser.
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
