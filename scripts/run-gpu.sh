#!/bin/sh
# run-gpu.sh MODELS: serves the pipelines of the model map by the engine server on
# this machine's GPU, and everything of `cutroom dev` with it. Both end together.
#
# ENGINE_PORT is the port of the engine server (8090), on this machine alone. The
# settings of either may be set as well: see docs/gpu.md.
set -eu
cd "$(dirname "$0")/.."
models=${1:-gpu/models.yaml}
address=127.0.0.1:${ENGINE_PORT:-8090}
if [ ! -f "$models" ]; then
	echo "Say which pipelines serve the models: make run-gpu MODELS=path/to/models.yaml (see docs/gpu.md)" >&2
	exit 1
fi
models=$(cd "$(dirname "$models")" && pwd)/$(basename "$models")

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

python=$PWD/.tools/gpu/bin/python
# serve runs the engine server, and another one when it has lost the GPU (75) or was
# ended by a signal other than those that people send, such as by the system when
# memory ran out.
serve() {
	trap 'kill "$engine" 2>/dev/null; wait "$engine"; exit' TERM
	cd gpu
	while :; do
		CUTROOM_ENGINE_ADDR=$address CUTROOM_ENGINE_MODELS=$models "$python" -m cutroom_engine &
		engine=$!
		status=0
		wait "$engine" || status=$?
		case $status in
		75 | 13[1-9]) echo "The engine server ended with status $status and is started anew." >&2 ;;
		*) exit "$status" ;;
		esac
		sleep 1
	done
}
serve &
server=$!
until curl -sf -o "$folder/health" "http://$address/healthz"; do
	kill -0 "$server" 2>/dev/null || exit 1 # it has said why
	sleep 0.2
done
CUTROOM_ENGINE=http://$address bin/cutroom dev
