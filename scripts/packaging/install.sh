#!/bin/sh
# install.sh [VERSION]: downloads a release of Cutroom for this machine (by default the latest), verifies its
# checksum, and installs it.
#   PREFIX=~/.local    the folder in which bin/cutroom and lib/cutroom are created; the default for root is /usr/local
#   RELEASES=URL       downloads releases from another URL
set -eu
releases=${RELEASES:-}

main() {
	[ -n "$releases" ] || fail "Set RELEASES to the URL of the releases, or use a release's own install.sh."
	for tool in curl tar; do
		command -v "$tool" >/dev/null 2>&1 || fail "Install $tool first."
	done
	case $(uname -s) in
	Linux) system=linux ;;
	Darwin) system=darwin ;;
	*) fail "There is no release for $(uname -s). On Windows, use WSL." ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) architecture=amd64 ;;
	aarch64 | arm64) architecture=arm64 ;;
	*) fail "There is no release for the processor $(uname -m)." ;;
	esac
	flavour=
	if [ "$system" = linux ] && ! has_glibc; then
		flavour=_static
	fi
	prefix=${PREFIX:-$([ "$(id -u)" -eq 0 ] && echo /usr/local || echo "$HOME/.local")}

	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM
	version=${1:-}
	if [ -z "$version" ]; then
		# The URL of the latest release redirects to the URL with its tag.
		version=$(fetch --head --output /dev/null --write-out '%{url_effective}' "$releases/latest")
		version=${version##*/}
	fi
	version=v${version#v}
	name=cutroom_${version#v}_${system}_$architecture$flavour
	echo "Downloading $name.tar.gz"
	fetch --output "$work/checksums.txt" "$releases/download/$version/checksums.txt"
	fetch --output "$work/$name.tar.gz" "$releases/download/$version/$name.tar.gz"
	wanted=$(awk -v name="$name.tar.gz" '$2 == name { print $1 }' "$work/checksums.txt")
	[ -n "$wanted" ] || fail "checksums.txt does not list $name.tar.gz. Nothing was installed."
	[ "$(digest "$work/$name.tar.gz")" = "$wanted" ] ||
		fail "The checksum of $name.tar.gz is wrong: the download is damaged or was changed. Nothing was installed."
	tar -xzf "$work/$name.tar.gz" -C "$work"

	mkdir -p "$prefix/bin" "$prefix/lib" || fail "Set PREFIX to a folder that you may write to."
	rm -rf "$prefix/lib/cutroom.new"
	mv "$work/$name" "$prefix/lib/cutroom.new"
	rm -rf "$prefix/lib/cutroom"
	mv "$prefix/lib/cutroom.new" "$prefix/lib/cutroom"
	ln -sf ../lib/cutroom/cutroom "$prefix/bin/cutroom"
	echo "Installed $("$prefix/bin/cutroom" version) as $prefix/bin/cutroom"

	needs ffmpeg "FFmpeg 5 or later, which edits" "ffmpeg" "ffmpeg" "ffmpeg-free" "ffmpeg" "ffmpeg"
	needs heif-convert "heif-convert, for HEIC and AVIF pictures" "libheif-examples" "libheif" "libheif-tools" "libheif-tools" "libheif"
	case :$PATH: in
	*:"$prefix/bin":*) echo "Start it: cutroom dev" ;;
	*) echo "Start it: $prefix/bin/cutroom dev   ($prefix/bin is not in PATH)" ;;
	esac
}

fail() {
	echo "install.sh: $1" >&2
	exit 1
}

fetch() {
	curl --fail --silent --show-error --location --proto '=https,http' --retry 3 --connect-timeout 20 "$@" ||
		fail "A download failed. Nothing was installed."
}

digest() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum "$1" | cut -d ' ' -f 1
	else
		shasum -a 256 "$1" | cut -d ' ' -f 1
	fi
}

# has_glibc reports whether this system can start programs that are linked to glibc.
has_glibc() { [ -e /lib64/ld-linux-x86-64.so.2 ] || [ -e /lib/ld-linux-aarch64.so.1 ]; }

# needs PROGRAM MEANING APT PACMAN DNF APK BREW: if the program is missing, prints its purpose and the command that
# installs it.
needs() {
	command -v "$1" >/dev/null 2>&1 && return
	how="install it with the system's packages"
	for manager in "apt-get install $3" "pacman -S $4" "dnf install $5" "apk add $6" "brew install $7"; do
		if command -v "${manager%% *}" >/dev/null 2>&1; then
			how=$manager
			break
		fi
	done
	echo "Also needed: $2: $how"
}

main "$@"
