#!/bin/sh
# local-aws.sh start   starts a local AWS (MiniStack), deploys the stage to it, starts a worker, creates a key, and
#                      prints the next steps. If the local AWS is running, only changes are deployed.
# local-aws.sh stop    stops the local AWS and its workers. All data in it is lost.
#
# Only this machine and its Docker containers can reach the local AWS. Settings are in scripts/local.sh.
set -eu
cd "$(dirname "$0")/.."
. scripts/local.sh
pid=$home/ministack.pid

# here COMMAND…: runs a command that uses the local AWS instead of AWS.
here() { AWS_ENDPOINT_URL="http://127.0.0.1:$port" AWS_ENDPOINT_URL_S3="http://127.0.0.1:$port" "$@"; }

# answers reports whether the local AWS responds at the port.
answers() { curl --silent --output "$home/ready" --max-time 10 "http://127.0.0.1:$port/_ministack/ready"; }

start_ministack() {
	if runs "$pid" ministack; then
		if [ "$(cat "$home/port")" != "$port" ]; then
			echo "The local AWS of $home runs at port $(cat "$home/port"): make local-aws-stop stops it." >&2
			return 1
		fi
		return
	fi
	if answers; then
		echo "Port $port is in use by another program. Stop it, or choose another port: make local-aws LOCAL_AWS_PORT=4567" >&2
		return 1
	fi
	# The previous local AWS has ended, and its deployments with it. So stop their workers.
	for old in "$home"/*/; do
		ends "${old}worker.pid" bin/worker
	done
	find "${home:?}" -mindepth 1 -maxdepth 1 -type d -exec rm -rf {} +
	rm -f "$home/bootstrapped"
	mkdir -p "$home/tmp"
	bridge=$(.tools/python/bin/python scripts/docker-bridge.py)
	(
		[ -z "$bridge" ] || export ALSO_BIND="$bridge"
		export BIND_HOST=127.0.0.1 MINISTACK_HOST=127.0.0.1 GATEWAY_PORT="$port"
		export MINISTACK_REGION="$AWS_REGION" TMPDIR="$home/tmp"
		export AWS_ENDPOINT_URL="http://127.0.0.1:$port" LAMBDA_EXECUTOR=local SFTP_ENABLED=0 PYTHONDONTWRITEBYTECODE=1
		exec nohup .tools/python/bin/python -c "$(cat shared/testkit/awstest/ministack.py)"
	) >"$home/ministack.log" 2>&1 </dev/null &
	echo $! >"$pid"
	echo "$port" >"$home/port"
	tries=0
	until answers; do
		tries=$((tries + 1))
		if [ "$tries" -gt 600 ] || ! kill -0 "$(cat "$pid")" 2>/dev/null; then
			tail -n 20 "$home/ministack.log" >&2
			echo "The local AWS did not start." >&2
			return 1
		fi
		sleep 0.1
	done
}

# deployed reports whether the local AWS has the stage's stack.
deployed() {
	curl --silent --fail --output "$home/ready" --max-time 60 "http://127.0.0.1:$port/?Action=DescribeStacks&StackName=cutroom-$stage" \
		--header "Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/$AWS_REGION/cloudformation/aws4_request, SignedHeaders=host, Signature=0"
}

# deploy deploys the stage to the local AWS, if it is not deployed yet or its template has changed.
deploy() {
	functions=bin/functions/$architecture
	if [ "$(uname)" != Linux ]; then
		# On a Mac, the local AWS runs the functions as native macOS programs.
		functions=bin/functions/local
		built "$functions" "$("$GO" env GOOS)"
	fi
	described "cdk.out/local/$stage" -c worker=none -c watch=off -c streaming=off \
		-c webhookAllow=127.0.0.1 -c functions="$functions"
	if ! deployed; then
		rm -f "$of/template.json" "$of/key" # left by a deployment that was destroyed
	elif cmp -s "cdk.out/local/$stage/stack/$template" "$of/template.json"; then
		return
	fi
	echo "Deploying the stage $stage to the local AWS." >&2
	mkdir -p "$of"
	if [ ! -e "$home/bootstrapped" ]; then
		# Run this in another folder: the repository's contains a CDK app, which bootstrap would execute.
		quiet "$home/bootstrap.log" here sh -c "cd '$home' && '$PWD/.tools/cdk/node_modules/.bin/cdk' bootstrap aws://$account/$AWS_REGION"
		: >"$home/bootstrapped"
	fi
	quiet "$of/deploy.log" here .tools/cdk/node_modules/.bin/cdk deploy \
		--app "cdk.out/local/$stage/stack" --require-approval never \
		--outputs-file "$of/outputs.json" "Cutroom-$stage"
	# Create an ECS service, so that the function wake has one to scale. The real worker is a process here.
	ecs CreateCluster "{\"clusterName\": \"cutroom-$stage\"}"
	ecs CreateService "{\"cluster\": \"cutroom-$stage\", \"serviceName\": \"cutroom-$stage-worker\", \"taskDefinition\": \"worker\", \"desiredCount\": 0}"
	cp "cdk.out/local/$stage/stack/$template" "$of/template.json"
}

# ecs OPERATION INPUT calls ECS in the local AWS, which does not check signatures.
ecs() {
	status=$(curl --silent --show-error --max-time 600 --output "$of/answer" --write-out '%{http_code}' \
		"http://127.0.0.1:$port/" --data "$2" \
		--header "X-Amz-Target: AmazonEC2ContainerServiceV20141113.$1" --header 'Content-Type: application/x-amz-json-1.1' \
		--header "Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/$AWS_REGION/ecs/aws4_request, SignedHeaders=host, Signature=0")
	# Ignore errors about objects that exist since an earlier deployment.
	[ "$status" = 200 ] || grep -q 'not idempotent' "$of/answer" || { cat "$of/answer" >&2; return 1; }
}

make_key() {
	[ ! -s "$of/key" ] || return 0
	(
		umask 077
		here bin/cutroom keys create --stage "$stage" --account acme --admin >"$of/key.new" 2>"$of/key.log" ||
			{ cat "$of/key.log" >&2; exit 1; }
		# The keys in the events work too.
		quiet "$of/key.log" here bin/cutroom keys import --stage "$stage" events/keys.jsonl
		mv "$of/key.new" "$of/key"
	)
}

# programs builds the worker and the command line if a source has changed.
programs() {
	changed bin/programs-made || return 0
	mkdir -p bin
	: >bin/programs-making
	CGO_ENABLED=0 "$GO" build -o bin/ ./cmd/cutroom ./cmd/worker
	mv bin/programs-making bin/programs-made
}

# start_worker starts a worker. It replaces a running one if the program or the catalog has changed.
start_worker() {
	catalog=$(chosen catalog)
	family=$(chosen family)
	if runs "$of/worker.pid" bin/worker && [ ! bin/programs-made -nt "$of/worker.pid" ] &&
		[ "$(cat "$of/worker.models" 2>/dev/null)" = "$family $catalog" ] &&
		{ [ -z "$catalog" ] || [ ! "$catalog" -nt "$of/worker.pid" ]; }; then
		return
	fi
	ends "$of/worker.pid" bin/worker
	mkdir -p "$of/scratch"
	echo "$family $catalog" >"$of/worker.models"
	(
		[ -z "$catalog" ] || export CUTROOM_CATALOG="$catalog"
		[ -z "$family" ] || export CUTROOM_FAMILY="$family"
		export CUTROOM_JOBS_TABLE="cutroom-$stage-jobs" CUTROOM_USAGE_TABLE="cutroom-$stage-usage"
		export CUTROOM_BUCKET="cutroom-$stage-$account-$AWS_REGION"
		export CUTROOM_VIDEO_QUEUE="http://127.0.0.1:$port/$account/cutroom-$stage-video" CUTROOM_IMAGE_QUEUE="http://127.0.0.1:$port/$account/cutroom-$stage-image"
		export CUTROOM_SCRATCH="$of/scratch" CUTROOM_ADDR=127.0.0.1:0
		AWS_ENDPOINT_URL="http://127.0.0.1:$port" exec nohup bin/worker
	) >"$of/worker.log" 2>&1 </dev/null &
	echo $! >"$of/worker.pid"
	tries=0
	until grep -q '"the worker is accepting jobs"' "$of/worker.log"; do
		tries=$((tries + 1))
		if [ "$tries" -gt 600 ] || ! kill -0 "$(cat "$of/worker.pid")" 2>/dev/null; then
			tail -n 20 "$of/worker.log" >&2
			echo "The worker did not start." >&2
			return 1
		fi
		sleep 0.1
	done
}

# address API prints the URL of a deployed API in the local AWS. Its real host name would not resolve.
address() {
	id=$(sed -n "s|.*\"$1\": \"https://\([a-z0-9]*\)\..*|\1|p" "$of/outputs.json")
	echo "http://127.0.0.1:$port/restapis/$id/live/_user_request_"
}

start_alone() {
	mkdir -p "$home"
	chmod 700 "$home"
	scripts/install-python.sh .tools/python scripts/requirements.txt
	scripts/install-cdk.sh
	programs
	start_ministack
	# Write SAM's template during the deployment, so that SAM can start immediately later.
	built "bin/functions/$architecture" linux
	template_for_sam &
	sam=$!
	trap 'wait "$sam"' EXIT
	deploy
	make_key
	start_worker
	trap - EXIT
	wait "$sam"
	key=$(cat "$of/key")
	media=$(address MediaUrl)
	cat <<-NEXT
		A local AWS serves at http://127.0.0.1:$port, with the stage $stage and a worker.

		    media service      $media
		    inference gateway  $(address InferenceUrl)
		    key                $key

		Next:
		    curl -s $media/v1/files -H 'x-api-key: $key'
		    make sam-api # serves the media API from functions in Docker, by SAM, at http://127.0.0.1:3000
		    make sam-invoke FUNCTION=files EVENT=events/files/list.json
		    make local-aws-stop # stops the local AWS and deletes everything in it
	NEXT
}

# Other commands use the same files, so only one command may run at a time.
start() { exec python3 scripts/alone.py bin/local.lock scripts/local-aws.sh start_alone; }

stop() {
	for old in "$home"/*/; do
		ends "${old}worker.pid" bin/worker
	done
	ends "$pid" ministack
	rm -rf "$home"
}

case ${1:-} in
start | start_alone | stop) "$1" ;;
*)
	sed -n '2,9s/^# //p' "$0" >&2
	exit 2
	;;
esac
