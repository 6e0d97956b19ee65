#!/bin/sh
# base-images.sh [IMAGE…]: makes sure that Docker has the base images, by default all that scripts/base-images.txt
# lists with their digests. If an image is missing, it is pulled. If its registry does not respond, a substitute for
# tests is made from Debian's packages and this machine's Go.
#
# base-images.sh --reference IMAGE   prints the name to use in a build: with the digest from the list, if there is one
#                                    and the image was not made here
# base-images.sh --pin               asks the registries for the digests and writes them to the list
set -eu
cd "$(dirname "$0")/.."
list=scripts/base-images.txt
made=cutroom.base=made-here

# images prints the list's images for this processor, one per line. digest prints an image's digest.
images() {
	other=-arm64
	case $(uname -m) in aarch64 | arm64) other=-x86_64 ;; esac
	awk -v other="$other" '!/^#/ && NF && index($1, other) == 0 { print $1 }' "$list"
}
digest() { awk -v image="$1" '$1 == image { print $2 }' "$list"; }

# reachable reports within seconds whether an image's registry responds. Each registry is asked only once. If the
# engine uses a mirror, it counts as reachable, because this machine need not be able to reach the mirror.
silent=
reachable() {
	case $1 in *.*/*) host=${1%%/*} ;; *) host=default ;; esac
	case " $silent " in *" $host "*) return 1 ;; esac
	[ -n "$(docker info --format '{{range .RegistryConfig.Mirrors}}{{.}}{{end}}' 2>/dev/null)" ] ||
		timeout 20 docker manifest inspect "$1" >/dev/null 2>&1 || { silent="$silent $host"; return 1; }
}

# reference prints the image's name to use in a build.
reference() {
	if [ "$(docker image inspect --format '{{index .Config.Labels "cutroom.base"}}' "$1" 2>/dev/null)" = made-here ] ||
		[ -z "$(digest "$1")" ]; then
		echo "$1"
	else
		echo "$1@$(digest "$1")"
	fi
}

# debian makes a minimal Debian image that trusts the same certificates as this machine, such as a package proxy's.
debian() {
	command -v debootstrap >/dev/null 2>&1 ||
		scripts/install-package.sh debootstrap apt-get=debootstrap dnf=debootstrap pacman=debootstrap apk=debootstrap
	root=$(mktemp -d)
	trap 'rm -rf "$root"' EXIT
	# As in the official image, let dpkg install packages without waiting for the disk.
	mkdir -p "$root/debian/etc/dpkg/dpkg.cfg.d"
	echo force-unsafe-io >"$root/debian/etc/dpkg/dpkg.cfg.d/docker-apt-speedup"
	debootstrap --variant=minbase --include=ca-certificates bookworm "$root/debian" >"$root/log" 2>&1 ||
		{ tail -n 20 "$root/log" >&2; exit 1; }
	for certificate in /usr/local/share/ca-certificates/*.crt; do
		[ ! -e "$certificate" ] || cp "$certificate" "$root/debian/usr/local/share/ca-certificates/"
	done
	chroot "$root/debian" update-ca-certificates >>"$root/log" 2>&1
	# debootstrap has written its mirror's URL to sources.list.
	mirror=$(awk '/^deb / { print $2; exit }' "$root/debian/etc/apt/sources.list")
	for suite in "$mirror bookworm" "$mirror bookworm-updates" "${mirror%/}-security bookworm-security"; do
		echo "deb $suite main"
	done >"$root/debian/etc/apt/sources.list"
	# As in the official image, remove downloaded packages, package lists and manual pages. Keep the licenses.
	rm -rf "$root"/debian/var/cache/apt/* "$root"/debian/var/lib/apt/lists/* "$root"/debian/var/log/* \
		"$root"/debian/usr/share/man "$root"/debian/usr/share/locale "$root"/debian/usr/share/info
	find "$root/debian/usr/share/doc" -type f ! -name copyright -delete
	tar -C "$root/debian" -c . | docker import --change "LABEL $made" --change 'CMD ["bash"]' - "$1" >"$root/log"
	rm -rf "$root"
	trap - EXIT
}

# built ARGUMENTS…: builds an image. It prints the log only after a failure, because Docker's builders print a lot.
built() {
	log=$(mktemp)
	docker build --quiet "$@" >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; return 1; }
	rm -f "$log"
}

# make_image makes a substitute for an image, for this machine's processor.
make_image() {
	case $1 in
	debian:bookworm-slim) debian "$1" ;;
	golang:*)
		provide debian:bookworm-slim
		# GOTOOLCHAIN=local: the build fails if this machine's Go is older than go.mod says.
		goroot=$(go env GOROOT)
		built --tag "$1" --file - "$goroot" <<-LINES
			FROM debian:bookworm-slim
			LABEL $made
			RUN apt-get update && apt-get install -y --no-install-recommends git gcc libc6-dev && rm -rf /var/lib/apt/lists/*
			COPY . /usr/local/go
			ENV PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin GOPATH=/go GOTOOLCHAIN=local
			WORKDIR /go
		LINES
		;;
	public.ecr.aws/lambda/provided:*)
		provide debian:bookworm-slim
		# The image needs no Lambda runtime interface, because SAM adds its own.
		built --tag "$1" - <<-LINES
			FROM debian:bookworm-slim
			LABEL $made
			RUN mkdir -p /var/task /var/runtime
			WORKDIR /var/task
		LINES
		;;
	nvidia/cuda:*)
		# An image without CUDA suffices: the images built on it also work without a GPU.
		provide debian:bookworm-slim
		built --tag "$1" - <<-LINES
			FROM debian:bookworm-slim
			LABEL $made
		LINES
		;;
	*)
		echo "$1 cannot be pulled or made here." >&2
		return 1
		;;
	esac
}

# provide makes sure that the image exists: Docker has it, pulls it, or builds a substitute.
provide() {
	if docker image inspect "$1" >/dev/null 2>&1; then
		return
	fi
	if reachable "$1"; then
		digest=$(digest "$1")
		echo "Pulling $1." >&2
		docker pull --quiet "$1${digest:+@$digest}" >/dev/null
		[ -z "$digest" ] || docker tag "$1@$digest" "$1"
		return
	fi
	echo "No registry responds for $1: making it from this machine." >&2
	make_image "$1"
}

case ${1:-} in
--reference) reference "$2" ;;
--pin)
	for image in $(images); do
		docker pull --quiet "$image" >/dev/null
		pinned=$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$image" |
			sed -n 's/.*@//p' | head -n 1)
		[ -n "$pinned" ] || { echo "$image has no digest." >&2; exit 1; }
		sed -i.old "s|^$image\( .*\)\{0,1\}\$|$image $pinned|" "$list"
		rm -f "$list.old"
	done
	;;
"")
	for image in $(images); do
		provide "$image"
	done
	;;
*)
	for image in "$@"; do
		provide "$image"
	done
	;;
esac
