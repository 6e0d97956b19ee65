#!/bin/sh
# test-docker.sh [PART…]: tests the programs in containers, by default in all parts:
#   programs   the images of the server and of the deployment's programs, started by docker run and by Docker Compose,
#              with a local AWS
#   worker     only the images of the worker and of the media service
#   sam        the functions as make local-aws, make sam-invoke and make sam-api run them: all sample events, and the
#              requests of the deployment's tests
#   engine     the engine server's image, with tiny weights and without a GPU. PyTorch with CUDA needs 7 GB of disk
# If no Docker engine responds, the script starts one. If no registry responds, it makes the base images. At the end it
# stops everything, but keeps the images. They are built while the part sam runs.
set -eu
cd "$(dirname "$0")/.."
. scripts/stages.sh

# The tests keep the files of their local AWS here, each stage in its own folder.
export LOCAL_AWS="$PWD/test-output/local-aws"
mkdir -p test-output
rm -f test-output/failed
building=
started=$(scripts/docker-engine.sh start)
# clean removes everything that tests have left behind, even killed ones. It finds containers by their label, and
# networks and volumes by the name of their project.
clean() {
	trap '' INT TERM
	[ -z "$building" ] || kill -- "-$building" 2>/dev/null || kill "$building" 2>/dev/null || true
	for left in $(docker ps --all --quiet --filter label=cutroom.test) $(docker ps --all --quiet --filter name=cutroom-test-) \
		$(docker ps --all --quiet --filter label=ministack=ecs); do
		docker rm --force --volumes "$left" >/dev/null || true
	done
	for left in $(docker network ls --quiet --filter name=cutroom-test-); do
		docker network rm "$left" >/dev/null || true
	done
	for left in $(docker volume ls --quiet --filter name=cutroom-test-); do
		docker volume rm "$left" >/dev/null || true
	done
	for left in "$LOCAL_AWS"/*/; do
		[ ! -d "$left" ] || LOCAL_AWS=${left%/} scripts/local-aws.sh stop
	done
	# SAM does not name its containers, so find them by their mounts.
	docker ps --no-trunc --format '{{.ID}} {{.Mounts}}' | grep -F "$PWD/cdk.out/sam/" | while read -r left _; do
		docker rm --force "$left" >/dev/null || true
	done
	[ -z "$started" ] || scripts/docker-engine.sh stop
}
trap 'clean; report_failures' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# tests NAMES: runs the image tests with these names. More of them run at a time than there are processors, because
# they mostly wait for containers.
tests() {
	TAG='test' recorded released test -tags docker -count=1 -parallel 4 -timeout 60m -run "$1" ./scripts/packaging/imagetest
}

# images NAME…: starts to build the images in the background. If the system has setsid, the build runs in its own
# session, so that clean can stop all of its processes.
images() {
	# shellcheck disable=SC2046 # a command, or none
	TAG='test' $(command -v setsid || true) scripts/images.sh "$@" >test-output/images.log 2>&1 &
	building=$!
}

# built waits until the images are built. It prints the build's output only after a failure.
built() {
	[ -n "$building" ] || return 0
	status=0
	wait "$building" || status=$?
	building=
	[ "$status" -eq 0 ] || tail -n 60 test-output/images.log >&2
	return "$status"
}

programs() {
	command -v docker-compose >/dev/null 2>&1 || docker compose version >/dev/null 2>&1 ||
		scripts/install-package.sh "Docker Compose" apt-get=docker-compose \
			dnf=docker-compose-plugin pacman=docker-compose apk=docker-cli-compose brew=docker-compose
	took "containers of the programs" tests 'TestMedia|TestWorker|TestRealtime|TestServer|TestCompose|TestImages|TestTasks'
}

# Run these two one after the other, because both build the same files. The later steps use separate folders.
sam() {
	took "functions by SAM" recorded released test -tags docker -count=1 -p 2 -timeout 60m \
		-run 'TestFunctionsRespondUnderSAM|TestLocalAWSWorks' ./functions ./infra/deployment
}

[ $# -gt 0 ] || set -- programs sam engine
names=
for part in "$@"; do
	case $part in
	programs) names="$names server worker media realtime" ;;
	worker) names="$names worker media" ;;
	engine) names="$names engine" ;;
	sam) ;;
	*) echo "test-docker.sh: unknown part $part, must be programs, worker, sam or engine" >&2; exit 2 ;;
	esac
done
took "base images" scripts/base-images.sh
# shellcheck disable=SC2086 # several image names
[ -z "$names" ] || images $names
scripts/install-python.sh .tools/python scripts/requirements.txt
# The local AWS needs Docker's SDK for Python in order to run containers.
if ! cmp -s scripts/requirements-docker.txt .tools/docker-sdk/made-of; then
	rm -rf .tools/docker-sdk
	.tools/pip/bin/pip install --quiet --disable-pip-version-check --no-deps --target .tools/docker-sdk \
		--requirement scripts/requirements-docker.txt
	cp scripts/requirements-docker.txt .tools/docker-sdk/made-of
fi
case " $* " in *" sam "*) sam ;; esac
took "images, the rest" built
for part in "$@"; do
	case $part in
	programs) programs ;;
	worker) took "containers of the worker" tests TestWorker ;;
	engine) took "container of the engine server" tests TestEngine ;;
	esac
done
