#!/bin/sh
# Installs what only the tests need, where it is missing: the system's packages that
# preflight.sh names for them, a browser among them, the Python programs of
# requirements.txt in .tools/python, of requirements-c2pa-test.txt in .tools/c2papython, of
# requirements-template.txt in .tools/template, of gpu/requirements-test.txt in
# .tools/engine and of requirements-audit.txt in .tools/audit, what builds the client
# packages (install-clients.sh), the library of Content Credentials in .tools/c2pa, the
# command line of AWS CDK, in .tools/node the client library for Node with a Node that it
# runs on, in .tools/console what drives the browser and checks its pages, in
# .tools/livevideo the client library of live video for browsers, and in .tools/generators
# what lints an OpenAPI document and makes another client of it.
set -eu
cd "$(dirname "$0")"

# Python is asked for its version below, so it has to be there by now.
./preflight.sh test

# Chromium's headless shell takes half of the browser's processor time. Where it is not a
# package, or may not be installed without asking, the tests take the browser.
if ! command -v chromium-headless-shell >/dev/null 2>&1 && { [ "$(id -u)" -eq 0 ] || sudo -n true; } >/dev/null 2>&1 &&
	apt-cache madison chromium-headless-shell 2>/dev/null | grep -q .; then
	./install-package.sh "Chromium's headless shell" apt-get=chromium-headless-shell ||
		echo "The tests take the whole browser, which is slower." >&2
fi

./install-python.sh ../.tools/python requirements.txt
./install-python.sh ../.tools/template requirements-template.txt
./install-python.sh ../.tools/engine ../gpu/requirements-test.txt
./install-python.sh ../.tools/audit requirements-audit.txt
./install-python.sh ../.tools/c2papython requirements-c2pa-test.txt
./install-clients.sh
./install-c2pa.sh .tools/c2pa

./install-cdk.sh

./install-npm.sh ../.tools/node ../cmd/cutroom/testdata/openai
./install-npm.sh ../.tools/console ../cmd/cutroom/consoletest/testdata
./install-npm.sh ../.tools/livevideo ../cmd/cutroom/testdata/livevideo
./install-npm.sh ../.tools/generators ../cmd/cutroom/testdata/clients
