#!/bin/sh
# images.sh [NAME…]: builds this repository's images with Docker, by default all:
#   server                  cutroom, the one-machine server
#   worker media realtime   cutroom-worker, …, the programs that run in containers of a deployment
#   engine                  cutroom-engine, the engine server for GPUs
# Base images are pinned by the digests in scripts/base-images.txt. Variables:
#   ARCHITECTURE=arm64 (or amd64) builds for another processor than this machine's
#   TAG (latest) is the images' tag; VERSION and REVISION are stored in them
#   DOCKER_BUILDKIT=1 or =0 selects Docker's builder
set -eu
cd "$(dirname "$0")/.."
tag=${TAG:-latest}
revision=${REVISION:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
version=${VERSION:-$(git describe --tags --always 2>/dev/null || echo devel)}

build() {
	name=$1
	shift
	echo "Building $name:$tag." >&2
	docker build --tag "$name:$tag" --build-arg VERSION="$version" --build-arg REVISION="$revision" "$@" .
}

# program ARGUMENTS…: builds an image from the file Dockerfile.
program() {
	if [ -n "${ARCHITECTURE:-}" ]; then
		# Docker's older builder does not set TARGETARCH.
		set -- "$@" --platform "linux/$ARCHITECTURE" --build-arg TARGETARCH="$ARCHITECTURE"
	fi
	build "$@" --build-arg PROGRAMS="$programs" --build-arg DEBIAN="$(scripts/base-images.sh --reference debian:bookworm-slim)" \
		--build-arg GOLANG="$(scripts/base-images.sh --reference golang:1.26-bookworm)"
}

[ $# -gt 0 ] || set -- server worker media realtime engine
# The build of the first image compiles the Go programs for all of the images.
programs=
for name in "$@"; do
	case $name in
	server) programs="$programs ./cmd/cutroom" ;;
	worker | media | realtime) programs="$programs ./cmd/$name" ;;
	esac
done
for name in "$@"; do
	case $name in
	server) program cutroom --target server ;;
	worker | media | realtime) program "cutroom-$name" --build-arg PROGRAM="$name" ;;
	engine)
		base=${CUDA:-nvidia/cuda:13.0.1-base-ubuntu24.04}
		build cutroom-engine --file gpu/Dockerfile --build-arg CUDA="$(scripts/base-images.sh --reference "$base")"
		;;
	*)
		echo "images.sh: unknown image $name, must be server, worker, media, realtime or engine" >&2
		exit 2
		;;
	esac
done
