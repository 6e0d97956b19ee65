#!/bin/sh
# base-images.sh [IMAGE…]: makes sure that Docker has the base images, by default all of
# scripts/base-images.txt, which has their digests. It pulls them if their registry responds.
# Otherwise it makes substitutes for tests from Debian's packages and this machine's Go. Existing
# images stay.
#
# base-images.sh --reference IMAGE   prints the image's name for a build: with its
#                                    digest if the list has it, unless the image
#                                    was made here
# base-images.sh --pin               writes the digests that the registries give into
#                                    the list
set -eu
cd "$(dirname "$0")/.."
list=scripts/base-images.txt
made=cutroom.base=made-here

# images prints the list's images for this processor, one per line; digest prints an image's digest.
images() {
	other=-arm64
	case $(uname -m) in aarch64 | arm64) other=-x86_64 ;; esac
	awk -v other="$other" '!/^#/ && NF && index($1, other) == 0 { print $1 }' "$list"
}
digest() { awk -v image="$1" '$1 == image { print $2 }' "$list"; }

# reachable reports within seconds whether an image's registry responds. It asks each registry once.
# A mirror that the engine uses need not be reachable from here.
silent=
reachable() {
	case $1 in *.*/*) host=${1%%/*} ;; *) host=default ;; esac
	case " $silent " in *" $host "*) return 1 ;; esac
	[ -n "$(docker info --format '{{range .RegistryConfig.Mirrors}}{{.}}{{end}}' 2>/dev/null)" ] ||
		timeout 20 docker manifest inspect "$1" >/dev/null 2>&1 || { silent="$silent $host"; return 1; }
}

# reference prints an image's name for a build.
reference() {
	if [ "$(docker image inspect --format '{{index .Config.Labels "cutroom.base"}}' "$1" 2>/dev/null)" = made-here ] ||
		[ -z "$(digest "$1")" ]; then
		echo "$1"
	else
		echo "$1@$(digest "$1")"
	fi
}

# debian makes an image of a minimal Debian with the certificates that this machine trusts, such as a package proxy's.
debian() {
	command -v debootstrap >/dev/null 2>&1 ||
		scripts/install-package.sh debootstrap apt-get=debootstrap dnf=debootstrap pacman=debootstrap apk=debootstrap
	root=$(mktemp -d)
	trap 'rm -rf "$root"' EXIT
	# As in the official image, packages are installed without waiting for the disk.
	mkdir -p "$root/debian/etc/dpkg/dpkg.cfg.d"
	echo force-unsafe-io >"$root/debian/etc/dpkg/dpkg.cfg.d/docker-apt-speedup"
	debootstrap --variant=minbase --include=ca-certificates bookworm "$root/debian" >"$root/log" 2>&1 ||
		{ tail -n 20 "$root/log" >&2; exit 1; }
	for certificate in /usr/local/share/ca-certificates/*.crt; do
		[ ! -e "$certificate" ] || cp "$certificate" "$root/debian/usr/local/share/ca-certificates/"
	done
	chroot "$root/debian" update-ca-certificates >>"$root/log" 2>&1
	# debootstrap has written the mirror that it used.
	mirror=$(awk '/^deb / { print $2; exit }' "$root/debian/etc/apt/sources.list")
	for suite in "$mirror bookworm" "$mirror bookworm-updates" "${mirror%/}-security bookworm-security"; do
		echo "deb $suite main"
	done >"$root/debian/etc/apt/sources.list"
	# As in the official image, remove downloaded packages, package lists and manual pages. Licenses stay.
	rm -rf "$root"/debian/var/cache/apt/* "$root"/debian/var/lib/apt/lists/* "$root"/debian/var/log/* \
		"$root"/debian/usr/share/man "$root"/debian/usr/share/locale "$root"/debian/usr/share/info
	find "$root/debian/usr/share/doc" -type f ! -name copyright -delete
	tar -C "$root/debian" -c . | docker import --change "LABEL $made" --change 'CMD ["bash"]' - "$1" >"$root/log"
	rm -rf "$root"
	trap - EXIT
}

# built ARGUMENTS…: builds an image and prints the log only on failure, because both of Docker's builders print a lot.
built() {
	log=$(mktemp)
	docker build --quiet "$@" >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; return 1; }
	rm -f "$log"
}

# make_image makes an image for this machine's processor.
make_image() {
	case $1 in
	debian:bookworm-slim) debian "$1" ;;
	golang:*)
		provide debian:bookworm-slim
		# GOTOOLCHAIN: the version in go.mod is installed, or the build fails.
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
		# SAM provides the substitute for Lambda's runtime.
		built --tag "$1" - <<-LINES
			FROM debian:bookworm-slim
			LABEL $made
			RUN mkdir -p /var/task /var/runtime
			WORKDIR /var/task
		LINES
		;;
	nvidia/cuda:*)
		# Images built on it work on machines that have no GPU.
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

# provide makes sure that an image exists.
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
