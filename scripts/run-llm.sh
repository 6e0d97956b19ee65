#!/bin/sh
# run-llm.sh GGUF: serves the model in the file on this machine's processor, by
# llama-cpp-python's server, and everything of `cutroom dev` with it: the gateway
# answers for the model by the name "local". Both end together.
#
# LLM_CONTEXT is how many tokens prompt and completion may have together (4096),
# LLM_PORT the port of the model server (8082), on this machine alone.
set -eu
cd "$(dirname "$0")/.."
gguf=${1:-}
context=${LLM_CONTEXT:-4096}
port=${LLM_PORT:-8082}
if [ ! -f "$gguf" ]; then
	echo "Say which model to serve: make run-llm GGUF=path/to/model.gguf" >&2
	exit 1
fi
scripts/install-llm.sh

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
# Ctrl-C reaches all of them: each stops by itself, this one last.
trap : INT
trap 'exit 143' TERM

.tools/llm/bin/python -m llama_cpp.server --model "$gguf" --model_alias local --n_ctx "$context" \
	--host 127.0.0.1 --port "$port" >"$folder/server.log" 2>&1 &
server=$!
until curl -sf -o "$folder/models" "http://127.0.0.1:$port/v1/models"; do
	if ! kill -0 "$server" 2>/dev/null; then
		tail -n 20 "$folder/server.log" >&2
		echo "The model server ended. Is $gguf a model that llama.cpp knows?" >&2
		exit 1
	fi
	sleep 0.2
done

cat >"$folder/row" <<ROW
  - id: local
    description: $(basename "$gguf" | tr -cd 'A-Za-z0-9._-'), on this machine's processor.
    routes: [chat, completions]
    context_length: $context
    max_output_length: $context
    stream_options: false
    chat_template_kwargs: false
    upstreams:
      - {url: "http://127.0.0.1:$port/v1", model: local}
ROW
sed "/^inference:/r $folder/row" "${CUTROOM_CATALOG:-shared/domain/catalog/catalog.yaml}" >"$folder/catalog.yaml"
CUTROOM_CATALOG="$folder/catalog.yaml" bin/cutroom dev
