#!/bin/sh
# test-docker.sh [PART…]: tests the programs in containers, all parts by default:
#   programs   the images of the one-machine server and of the container programs, by
#              docker run and by Docker Compose, with a local AWS
#   worker     only the images of a worker and of the media service
#   sam        the functions by SAM, as make local-aws, make sam-invoke and make sam-api
#              run them: all sample events, and the requests of the deploy's tests
#   engine     the image of the engine server, on tiny weights without a GPU; it takes
#              PyTorch with CUDA, 7 GB of disk
# It starts a Docker engine if none responds, makes the base images if no registry responds, and
# stops everything at the end; images stay. They are built while SAM's part runs.
set -eu
cd "$(dirname "$0")/.."
. scripts/stages.sh

# The tests keep their local AWS there, each stage in a separate folder.
export LOCAL_AWS="$PWD/test-output/local-aws"
mkdir -p test-output
rm -f test-output/failed
building=
started=$(scripts/docker-engine.sh start)
# Leftovers of a killed test have the label of the tests, or the name of one of their projects.
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
	# SAM gives its containers no name: find them by their mounts.
	docker ps --no-trunc --format '{{.ID}} {{.Mounts}}' | grep -F "$PWD/cdk.out/sam/" | while read -r left _; do
		docker rm --force "$left" >/dev/null || true
	done
	[ -z "$started" ] || scripts/docker-engine.sh stop
}
trap 'clean; report_failures' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# tests NAMES: runs the images' tests with these names. More run concurrently than there are
# processors, because they mostly wait for containers.
tests() {
	TAG='test' recorded released test -tags docker -count=1 -parallel 4 -timeout 60m -run "$1" ./scripts/packaging/imagetest
}

# images NAME…: starts building the images, in a separate session if the system has sessions, so
# that the builder's client ends with the rest.
images() {
	# shellcheck disable=SC2046 # a command, or none
	TAG='test' $(command -v setsid || true) scripts/images.sh "$@" >test-output/images.log 2>&1 &
	building=$!
}

# built waits for the images. It prints the builder's output only on failure.
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

# Run these in turn, because both build the same files; later steps use separate folders.
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
# shellcheck disable=SC2086 # several names
[ -z "$names" ] || images $names
scripts/install-python.sh .tools/python scripts/requirements.txt
# The local AWS needs Docker's SDK for Python to run containers.
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
