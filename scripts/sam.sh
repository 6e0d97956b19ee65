#!/bin/sh
# sam.sh api                     uses SAM to serve the API API with the functions in Docker, until Ctrl-C
# sam.sh lambda                  serves Lambda's Invoke call for the same functions, for the AWS CLI and SDKs
# sam.sh invoke FUNCTION EVENT   invokes a function with the event in a file, and prints its response
#
# All of them need the local AWS that `make local-aws` starts. API is media (the default) or inference. SAM_PORT is the
# port on localhost: by default 3000 for media, 3002 for inference and 3001 for lambda. scripts/local.sh has further
# settings.
set -eu
cd "$(dirname "$0")/.."
. scripts/local.sh

# prepared checks what SAM needs, and builds missing parts.
prepared() {
	if [ ! -s "$of/key" ] || ! curl --silent --output "$home/ready" --max-time 10 "http://127.0.0.1:$(cat "$home/port")/_ministack/ready"; then
		echo "No local AWS is running for stage $stage. Start it with: make local-aws STAGE=$stage" >&2
		return 1
	fi
	port=$(cat "$home/port")
	if ! docker info >"$home/docker.log" 2>&1; then
		tail -n 1 "$home/docker.log" >&2
		echo "SAM needs Docker, but no engine responds: start Docker Desktop or, as root, scripts/docker-engine.sh start" >&2
		return 1
	fi
	scripts/install-python.sh .tools/template scripts/requirements-template.txt
	bridge=$(.tools/template/bin/python scripts/docker-bridge.py)
	if [ -n "$bridge" ] && ! curl --silent --output "$home/ready" --max-time 10 "http://$bridge:$port/_ministack/ready"; then
		echo "Docker's network got another address ($bridge) after the local AWS was started: run make local-aws-stop local-aws" >&2
		return 1
	fi
	scripts/install-cdk.sh
	# Other commands use the same files, so only one command may run at a time.
	LOCAL_AWS_PORT=$port python3 scripts/alone.py bin/local.lock scripts/sam.sh template
	scripts/base-images.sh "public.ecr.aws/lambda/provided:al2023-$architecture"
}

# sam ARGUMENTS…: replaces this shell with SAM. Containers reach the local AWS at host.docker.internal: Docker Desktop
# has that name, and on Linux the option adds it.
sam() {
	exec .tools/template/bin/sam local "$@" --template "cdk.out/sam/$stage/stack/${API:-media}.template.json" \
		--add-host host.docker.internal:host-gateway --skip-pull-image
}

# serve COMMAND PORT: starts SAM. Each function gets one container at its first call, which runs until the end.
serve() {
	prepared
	sam "$1" --host 127.0.0.1 --port "${SAM_PORT:-$2}" --warm-containers LAZY
}

invoke() {
	function=${1:-}
	event=${2:-}
	if [ -z "$function" ] || [ ! -d "functions/$function" ]; then
		echo "FUNCTION must be one of $(find functions -mindepth 1 -maxdepth 1 -type d | sed 's|functions/||' | sort | tr '\n' ' ')" >&2
		return 1
	fi
	if [ ! -f "$event" ]; then
		echo "EVENT must be a file, such as $(find "events/$function" -name '*.json' ! -name '*.want.json' | sort | head -n 1)" >&2
		return 1
	fi
	prepared
	sam invoke "cutroom-$stage-$function" --event "$event"
}

case ${1:-} in
api)
	case ${API:-media} in
	media) serve start-api 3000 ;;
	inference) serve start-api 3002 ;;
	*) echo "API must be media or inference, not $API." >&2; exit 1 ;;
	esac
	;;
lambda) serve start-lambda 3001 ;;
template)
	built "bin/functions/$architecture" linux
	template_for_sam
	;;
invoke) invoke "${2:-}" "${3:-}" ;;
*)
	sed -n '2,10s/^# //p' "$0" >&2
	exit 2
	;;
esac
