#!/bin/sh
# run-llm.sh GGUF: serves the model in a GGUF file on this machine's processor with llama.cpp's own server, and starts
# `cutroom dev`, whose gateway serves the model under the name "local". Stopping one stops both.
#
# LLM_CONTEXT is the maximum number of tokens of a prompt and its completion together (4096). LLM_CALLS is the number
# of concurrent requests, each with its own memory (2); further requests wait. LLM_THREADS is the model's number of
# threads (one per processor). LLM_PORT is the port of the model server (8082), which listens only on localhost.
# LLM_KEY is the server's key; the default is random.
set -eu
cd "$(dirname "$0")/.."
gguf=${1:-}
context=${LLM_CONTEXT:-4096}
calls=${LLM_CALLS:-2}
port=${LLM_PORT:-8082}
if [ ! -f "$gguf" ]; then
	echo "Set GGUF to the model file: make run-llm GGUF=path/to/model.gguf" >&2
	exit 1
fi
scripts/install-llm.sh
LLM_KEY=${LLM_KEY:-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')}
export LLM_KEY

folder=$(mktemp -d)
server=
end() {
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
	fi
	rm -rf "$folder"
}
trap end EXIT
# Ctrl-C reaches all processes. Each of them stops, and this script waits until they have.
trap : INT
trap 'exit 143' TERM

python=.tools/llm/bin/python
if ! routes=$($python scripts/llm-server.py routes "$gguf" 2>"$folder/server.log"); then
	tail -n 1 "$folder/server.log" >&2
	echo "$gguf is not a GGUF file." >&2
	exit 1
fi
$python scripts/llm-server.py serve "$gguf" "$context" "$calls" "$port" >"$folder/server.log" 2>&1 &
server=$!
# Only our server accepts the key, so this is not another program on the port.
until printf 'header = "Authorization: Bearer %s"\n' "$LLM_KEY" |
	curl -sf -K - -o "$folder/props" "http://127.0.0.1:$port/props"; do
	if ! kill -0 "$server" 2>/dev/null; then
		tail -n 20 "$folder/server.log" >&2
		echo "The model server exited. Does llama.cpp support the model $gguf?" >&2
		exit 1
	fi
	sleep 0.2
done

{
	cat <<ROW
  - id: local
    description: $(basename "$gguf" | tr -cd 'A-Za-z0-9._-'), on this machine's processor.
    routes: $routes
    context_length: $context
ROW
	case $routes in *chat*)
		cat <<ROW
    max_output_length: $context
    max_tokens_field: n_predict
ROW
		;;
	esac
	cat <<ROW
    queue: {calls: 100, wait: 1m}
    upstreams:
      - {url: "http://127.0.0.1:$port/v1", model: local, secret: "env:LLM_KEY", concurrency: $calls}
ROW
} >"$folder/row"
sed "/^inference:/r $folder/row" "${CUTROOM_CATALOG:-shared/domain/catalog/catalog.yaml}" >"$folder/catalog.yaml"
scripts/bring-c2pa.sh || true # the server reports a missing library
CUTROOM_CATALOG="$folder/catalog.yaml" bin/cutroom dev
