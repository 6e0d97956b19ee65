#!/bin/sh
# clients.sh FOLDER [DOCUMENT]: builds the client packages for Python and TypeScript into a folder. DOCUMENT is the
# path or URL of the OpenAPI document, for example of a deployment with custom models. The default is the document of
# this source tree.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
document=${2:-}
case $document in '' | http://* | https://* | /*) ;; *) document=$PWD/$document ;; esac
cd "$(dirname "$0")/.."
tools=$PWD/.tools
python=$tools/clients/bin

scripts/install-clients.sh
if [ -z "$document" ]; then
	"${GO:-go}" run ./clients/document >"$folder/served.json"
	document=$folder/served.json
fi
"$python/python" clients/prepare.py "$document" >"$folder/openapi.json"

# Copy the sources, so that the generated code does not end up in the repository.
rm -rf "$folder/python" "$folder/typescript"
cp -R clients/python clients/typescript "$folder"

PATH=$python:$PATH openapi-python-client generate --path "$folder/openapi.json" --meta none \
	--output-path "$folder/python/src/cutroom/generated" --config clients/python/generator.yaml --fail-on-warning >&2
"$tools/pip/bin/pip" --python "$python/python" wheel --quiet --disable-pip-version-check --no-deps \
	--no-build-isolation --wheel-dir "$folder" "$folder/python"

cd "$folder/typescript"
ln -s "$tools/typescript/node_modules" node_modules
node_modules/.bin/openapi-typescript "$folder/openapi.json" --output src/schema.ts >&2
node_modules/.bin/tsc
npm pack --ignore-scripts --silent --pack-destination "$folder" >/dev/null
