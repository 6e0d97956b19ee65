#!/bin/sh
# Installs the tools that build the client packages, if they are missing: the Python programs of
# requirements-clients.txt in .tools/clients, and the npm packages of clients/typescript in .tools/typescript.
set -eu
cd "$(dirname "$0")"
./install-python.sh ../.tools/clients requirements-clients.txt
./install-npm.sh ../.tools/typescript ../clients/typescript
