#!/bin/sh
# run-gpu.sh MODELS: starts an engine server with the pipelines of the model map on each GPU of this machine, and
# `cutroom dev` that uses them. Stopping one stops all.
#
# GPUS are the indices of the GPUs (CUDA_VISIBLE_DEVICES, else all that nvidia-smi lists). ENGINE_PORT is the port of
# the first engine server (8090); the others use the ports after it. All listen only on localhost. DOWNLOAD=yes first
# fetches the weights for the card in CARD, by default the machine's card. The settings of both programs work too: see
# docs/gpu.md.
set -eu
cd "$(dirname "$0")/.."
models=${1:-gpu/models.yaml}
port=${ENGINE_PORT:-8090}
gpus=${GPUS:-${CUDA_VISIBLE_DEVICES:-$(nvidia-smi --query-gpu=index --format=csv,noheader 2>/dev/null || true)}}
if [ ! -f "$models" ]; then
	echo "MODELS: there is no model map $models (see docs/gpu.md)" >&2
	exit 1
fi
# Check the driver first, because the installation takes minutes.
if [ "${CUTROOM_ENGINE_DEVICE:-}" != cpu ] && ! nvidia-smi >/dev/null 2>&1; then
	echo "nvidia-smi finds no GPU. Install the NVIDIA driver, or set CUTROOM_ENGINE_DEVICE=cpu to work without a GPU." >&2
	exit 1
fi
scripts/install-gpu.sh
# Results of models are signed by default, so install the library.
! CUTROOM_ENGINE=gpu scripts/wants-c2pa.sh || scripts/install-c2pa.sh bin
models=$(cd "$(dirname "$models")" && pwd)/$(basename "$models")

folder=$(mktemp -d)
servers=
end() {
	for server in $servers; do
		kill "$server" 2>/dev/null || true
	done
	for server in $servers; do
		wait "$server" || true
	done
	rm -rf "$folder"
}
trap end EXIT
# Ctrl-C reaches all processes. Each of them stops, and this script waits until they have.
trap : INT
trap 'exit 143' TERM

python=$PWD/.tools/gpu/bin/python
if [ "${DOWNLOAD:-}" = yes ]; then
	(cd gpu && CUDA_VISIBLE_DEVICES=$(echo "$gpus" | tr '\n ' ,,) "$python" -m cutroom_engine.prepare \
		--download "$models" ${CARD:+--card "$CARD"})
fi
# serve ADDRESS [GPU] runs an engine server. It restarts a server that has lost its GPU (exit status 75) or was killed
# by a signal that users do not normally send, for example by the system because memory ran out.
serve() {
	trap 'kill "$engine" 2>/dev/null; wait "$engine"; exit' TERM
	export CUTROOM_ENGINE_ADDR="$1" CUTROOM_ENGINE_MODELS="$models"
	# Let the server see only its own GPU, so that it takes no memory on the others.
	[ -z "${2:-}" ] || export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="$2"
	cd gpu
	while :; do
		"$python" -m cutroom_engine &
		engine=$!
		status=0
		wait "$engine" || status=$?
		case $status in
		75 | 13[1-9]) echo "The engine server exited with status $status; restarting it." >&2 ;;
		*) exit "$status" ;;
		esac
		sleep 1
	done
}

addresses=
# start ADDRESS [GPU] starts an engine server in the background.
start() {
	serve "$@" &
	servers="$servers $!"
	addresses="$addresses${addresses:+,}http://$1"
}
# Start one server if CUTROOM_ENGINE_DEVICE is set.
if [ -n "${CUTROOM_ENGINE_DEVICE:-}" ] || [ -z "$gpus" ]; then
	start "127.0.0.1:$port"
else
	for gpu in $(echo "$gpus" | tr , ' '); do
		start "127.0.0.1:$port" "$gpu"
		port=$((port + 1))
	done
fi
for address in $(echo "$addresses" | tr , ' '); do
	until curl -sf -o "$folder/health" "$address/healthz"; do
		for server in $servers; do
			kill -0 "$server" 2>/dev/null || exit 1 # the server has reported the reason
		done
		sleep 0.2
	done
done
CUTROOM_ENGINE=$addresses bin/cutroom dev
