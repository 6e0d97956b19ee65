#!/bin/sh
# preflight.sh TARGET: checks, before anything is built, that this machine has everything that the Makefile's target
# needs. If packages are missing and no password is needed (as root or with sudo), it prints the command that installs
# them and runs it. Otherwise, and for tools that need the user's consent (Go, Docker), it fails and prints one
# command that installs everything that is missing.
#
# It needs only a POSIX shell and the programs that every system has.
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}
target=${1:?a target of the Makefile}

linters="git python npm"
tests="make go certificates $linters curl gcc ffmpeg libvpx chromium strace namespaces"
case $target in
build | check-deploy | fuzz | scale) needs="go certificates" ;;
clients) needs="go certificates python npm" ;;
run)
	needs="go certificates ffmpeg"
	# The signing library is extracted from a Python package.
	! scripts/wants-c2pa.sh || needs="$needs pip"
	;;
soak | test-comfyui) needs="go certificates ffmpeg" ;;
run-llm | test-llm | run-gpu | test-gpu | bench-gpu) needs="go certificates ffmpeg curl python" ;;
lint) needs="go certificates $linters" ;;
audit) needs="certificates python npm" ;;
check) needs="go certificates $linters ffmpeg" ;;
test | race | test-update) needs=$tests ;;
bench) needs="$tests nginx" ;;
licenses) needs="go certificates python" ;;
release | release-check) needs="git go certificates python npm" ;;
sbom) needs="go certificates python${IMAGES:+ docker}" ;;
# The functions' package contains a library that is extracted from a Python package.
bootstrap) needs="go certificates npm" ;;
synth | diff | import | destroy) needs="go certificates npm pip" ;;
deploy)
	# Docker builds the workers' image, unless workers are off or an image is given.
	case ${CONTEXT:-} in
	*worker=none* | *workerImage=*) needs="go certificates npm pip" ;;
	*) needs="go certificates npm pip docker" ;;
	esac
	;;
images | pin-images) needs="docker" ;;
# Docker is not needed here: the test itself installs and starts an engine if necessary.
test-docker) needs="go certificates npm curl python ffmpeg" ;;
local-aws) needs="go certificates npm curl python ffmpeg" ;;
sam-api | sam-lambda | sam-invoke) needs="go certificates npm curl python docker" ;;
test-bare) needs="root git go certificates debootstrap" ;;
*)
	echo "preflight.sh: unknown target $target" >&2
	exit 2
	;;
esac

# The packages for each need, on each system; empty if another command provides it. Homebrew's plain ffmpeg lacks the
# filter that HDR clips need. gcc only recommends the C library's headers on Debian, and the race detector builds
# against them. need          apt-get             dnf              pacman           apk              brew
packages='
git             git                 git              git              git              git
make            make                make             make             make             make
certificates    ca-certificates     ca-certificates  ca-certificates  ca-certificates  -
curl            curl                curl             curl             curl             curl
go              -                   -                go               -                go
ffmpeg          ffmpeg,libheif-examples ffmpeg,libheif-tools ffmpeg,libheif ffmpeg,libheif-tools ffmpeg-full,libheif
libvpx          libvpx-dev          libvpx           libvpx           libvpx           libvpx
python          python3,python3-venv python3         python           python3          python
pip             python3,python3-venv python3         python           python3          python
npm             npm                 npm              npm              npm              node
gcc             gcc,libc6-dev       gcc,glibc-devel  gcc              gcc,musl-dev     -
chromium        chromium            chromium         chromium         chromium         -
strace          strace              strace           strace           strace           -
nginx           nginx-light         nginx            nginx            nginx            nginx
debootstrap     debootstrap         debootstrap      debootstrap      debootstrap      -
docker          docker.io           moby-engine      docker           docker           -
'

there() {
	command -v "$1" >/dev/null 2>&1
}

system=$(uname)
distribution=$(sed -n 's/^ID="\{0,1\}\([a-z]*\).*/\1/p' /etc/os-release 2>/dev/null || true)
manager='' column=0
for candidate in apt-get dnf pacman apk brew; do
	column=$((column + 1))
	if there "$candidate"; then
		manager=$candidate
		break
	fi
done
# Find out how to run a command as root, and whether that needs a password.
as_root='' unasked='' may=yes
if [ "$(id -u)" -ne 0 ]; then
	may=no
	for candidate in doas sudo; do
		if there "$candidate"; then
			as_root="$candidate " unasked="$candidate -n "
		fi
	done
	# shellcheck disable=SC2086 # words of a command
	if [ "$manager" = brew ] || { [ -n "$as_root" ] && ${unasked}true >/dev/null 2>&1; }; then
		may=yes
	fi
fi

# number reads a line and prints its first version as a number: 1.26 becomes 1026.
number() {
	sed -n 's/^[^0-9]*\([0-9][0-9]*\)\.\([0-9][0-9]*\).*/\1 \2/p' | awk 'NR == 1 { print $1 * 1000 + $2 }'
}

# installed_go GO prints the version of GO itself, not of a toolchain that it would download.
installed_go() {
	(cd / && GOTOOLCHAIN=local "$1" version 2>/dev/null) | sed 's/^go version \([^ ]*\).*/\1/'
}

# able_go GO reports whether GO can compile this module. Since 1.21, Go downloads the toolchain
# named in go.mod unless told not to.
able_go() {
	version=$(installed_go "$1" | number)
	[ -n "$version" ] || return 1
	[ "$version" -lt "$(grep '^go ' go.mod | number)" ] || return 0
	[ "$version" -ge 1021 ] || return 1
	case $(cd / && "$1" env GOTOOLCHAIN) in auto | *+auto) return 0 ;; *) return 1 ;; esac
}

has_heif() {
	there heif-convert || there heif-dec
}

# able_ffmpeg reports whether heif-convert is installed, and whether ffmpeg has the features that small builds lack.
# The service itself checks for other features when it starts.
able_ffmpeg() {
	there ffmpeg && there ffprobe && has_heif || return 1
	major=$(ffmpeg -version 2>/dev/null | sed -n '1s/^ffmpeg version n\{0,1\}\([0-9][0-9]*\)\..*/\1/p')
	[ "${major:-5}" -ge 5 ] || return 1
	ffmpeg -v error -encoders 2>/dev/null | grep -q ' libx264 ' &&
		ffmpeg -v error -filters 2>/dev/null | grep -q ' zscale '
}

# has_libvpx reports whether libvpx, which live video needs, is installed. Most packages of FFmpeg depend on it.
has_libvpx() {
	for file in /lib/*/libvpx.so.[0-9]* /usr/lib/*/libvpx.so.[0-9]* /usr/lib64/libvpx.so.[0-9]* /usr/lib/libvpx.so.[0-9]* \
		/usr/local/lib/libvpx.so.[0-9]* /opt/homebrew/lib/libvpx.dylib /usr/local/lib/libvpx.dylib; do
		[ ! -e "$file" ] || return 0
	done
	return 1
}

# certified reports whether root certificates are in a place where Go looks for them on Linux.
certified() {
	for file in ${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
		/etc/ssl/ca-bundle.pem /etc/pki/tls/cacert.pem /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem \
		/etc/ssl/cert.pem}; do
		[ ! -s "$file" ] || return 0
	done
	return 1
}

# node_version prints the version of Node.js as a number, or 0.
node_version() {
	version=$( (node --version 2>/dev/null || true) | number)
	echo "${version:-0}"
}

# has NEED reports whether the machine satisfies the requirement NEED.
has() {
	case $1:$system in
	certificates:Linux) certified ;;
	gcc:Linux) there gcc && [ -e /usr/include/stdlib.h ] ;;
	# Some tests mount a small disk in order to fill it. That needs root, or root in a user namespace.
	namespaces:Linux) [ "$(id -u)" -eq 0 ] || unshare --map-root-user --mount true 2>/dev/null ;;
	# One test traces which files decoders open.
	strace:Linux) there strace ;;
	certificates:* | namespaces:* | strace:*) ;;
	go:*) able_go "$GO" ;;
	ffmpeg:*) able_ffmpeg ;;
	libvpx:*) has_libvpx ;;
	python:*) there python3 && python3 -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ;;
	pip:*) there python3 && { python3 -m pip --version || python3 -c 'import ensurepip, venv'; } >/dev/null 2>&1 ;;
	npm:*) there npm && [ "$(node_version)" -ge 18000 ] ;;
	nginx:* | debootstrap:*) there "$1" || [ -x "/usr/sbin/$1" ] ;;
	docker:*) there docker && docker version >/dev/null 2>&1 ;;
	root:*) [ "$(id -u)" -eq 0 ] ;;
	*) there "$1" ;;
	esac
}

# title NEED prints the requirement's usual name.
title() {
	case $1 in
	go)
		printf 'Go %s or later' "$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)"
		if there "$GO"; then
			printf ' (this is %s)' "$(installed_go "$GO")"
		elif able_go /usr/local/go/bin/go; then
			printf ' in PATH (it is in /usr/local/go/bin)'
		fi
		;;
	certificates) printf 'certificates of authorities' ;;
	ffmpeg)
		if ! there ffmpeg; then
			printf FFmpeg
		elif ! has_heif; then
			printf 'heif-convert, which reads HEIC and AVIF pictures'
		else
			printf 'an FFmpeg from version 5 with ffprobe, libx264 and zscale'
		fi
		;;
	python) printf 'Python 3.11 or later with venv' ;;
	pip) printf 'Python with pip or venv' ;;
	npm) printf 'Node.js 18 or later with npm' ;;
	gcc) printf "gcc with the C library's headers" ;;
	chromium) printf Chromium ;;
	docker) if there docker; then printf 'a running Docker engine'; else printf Docker; fi ;;
	namespaces) printf 'to be root, or to have user namespaces' ;;
	root) printf 'to be root' ;;
	*) printf %s "$1" ;;
	esac
}

# packages_of NEED prints this system's packages that satisfy the requirement, if there are any.
packages_of() {
	case $1:$distribution in
	# On Ubuntu this package only installs a snap.
	chromium:ubuntu) return ;;
	docker:*) ! there docker || return 0 ;;
	esac
	[ -z "$manager" ] || echo "$packages" |
		awk -v need="$1" -v column="$column" '$1 == need && $(column + 1) != "-" { gsub(",", " ", $(column + 1)); print $(column + 1) }'
}

# uncovered NEED: prints the command that satisfies a requirement that has no package.
uncovered() {
	case $1:$manager in
	go:brew | go:pacman) ;;
	go:*)
		if ! there "$GO" && able_go /usr/local/go/bin/go; then
			# shellcheck disable=SC2016 # the reader's shell expands it
			echo 'export PATH="$PATH:/usr/local/go/bin"'
			return
		fi
		# Install Go from go.dev, because most distributions' packages are too old.
		case $system:$(uname -m) in
		Linux:x86_64) architecture=amd64 ;;
		Linux:aarch64) architecture=arm64 ;;
		*) return ;;
		esac
		[ ! -e /usr/local/go ] || printf '%s && ' "${as_root}rm -rf /usr/local/go"
		printf '%s | %s && ' "curl -sSfL https://go.dev/dl/$(sed -n 's/^toolchain //p' go.mod).linux-$architecture.tar.gz" \
			"${as_root}tar -C /usr/local -xzf -"
		echo "${as_root}ln -sf /usr/local/go/bin/go /usr/local/go/bin/gofmt /usr/local/bin/"
		;;
	ffmpeg:brew) echo "brew link ffmpeg-full" ;;
	gcc:brew) echo "xcode-select --install" ;;
	chromium:brew | docker:brew) echo "brew install --cask $1" ;;
	chromium:*) [ "$distribution" != ubuntu ] || echo "${as_root}snap install chromium" ;;
	docker:*) ! there systemctl || echo "${as_root}systemctl start docker" ;;
	namespaces:*)
		for knob in kernel.apparmor_restrict_unprivileged_userns=0 kernel.unprivileged_userns_clone=1; do
			file=/proc/sys/$(echo "${knob%=*}" | tr . /)
			[ ! -e "$file" ] || [ "$(cat "$file")" = "${knob#*=}" ] || echo "${as_root}sysctl -w $knob"
		done
		;;
	esac
}

# add PACKAGE: adds the package to the list of packages to install.
add() {
	case " $wanted " in
	*" $1 "*) ;;
	*) wanted="$wanted${wanted:+ }$1" ;;
	esac
}

# look checks all requirements. It collects the names of those not met, the packages and commands that would meet
# them, and the requirements that nothing here can meet. alone=yes means that everything may be installed without
# asking.
look() {
	missing='' wanted='' commands='' rest='' alone=yes
	for need in $needs; do
		if has "$need"; then
			continue
		fi
		missing="$missing${missing:+, }$(title "$need")"
		packed=$(packages_of "$need")
		command=$(uncovered "$need")
		for package in $packed; do
			add "$package"
		done
		commands="$commands${command:+ && $command}"
		[ -n "$packed$command" ] || rest="$rest${rest:+, }$(title "$need")"
		case $need:$manager in
		ffmpeg:brew) ;;
		go:* | docker:*) alone=no ;;
		*) [ -n "$packed" ] && [ -z "$command" ] || alone=no ;;
		esac
	done
	case $commands in *"curl "*)
		there curl || add curl
		has certificates || add ca-certificates
		;;
	esac
	case $commands in *"-m venv"*) has python || for package in $(packages_of python); do add "$package"; done ;; esac
	# Fedora's own ffmpeg has no H.264 encoder. RPM Fusion's has one, but adding a package source is the user's
	# decision.
	fusion=
	case $manager:" $wanted " in
	dnf:*" ffmpeg "*)
		if ! rpm -q rpmfusion-free-release >/dev/null 2>&1; then
			alone=no
			# shellcheck disable=SC2016 # the reader's shell expands it
			fusion='fedora/rpmfusion-free-release-$(rpm -E %fedora)'
			# shellcheck disable=SC2016
			[ "$distribution" = fedora ] || fusion='el/rpmfusion-free-release-$(rpm -E %rhel)'
		fi
		;;
	esac
}

# installing ROOT prints the command that installs everything that is missing. ROOT is put before the parts that need
# root.
installing() {
	install=
	case $manager in
	apt-get) install="$1apt-get update && $1env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends" ;;
	dnf)
		install="${fusion:+$1dnf install -y https://mirrors.rpmfusion.org/free/$fusion.noarch.rpm && }"
		install="$install$1dnf install -y --allowerasing"
		;;
	pacman)
		install="$1pacman -S --noconfirm --needed"
		# A fresh machine has no package lists yet, so get them.
		[ -e /var/lib/pacman/sync/core.db ] || install="$1pacman -Sy --noconfirm --needed"
		;;
	apk) install="$1apk add" ;;
	brew) install="brew install" ;;
	esac
	echo "${wanted:+$install $wanted}$commands" | sed 's/^ && //'
}

look
if [ -z "$missing" ]; then
	case $target in
	bootstrap | synth | diff | deploy | import | destroy)
		[ "$(node_version)" -ge 22000 ] || echo "AWS CDK no longer supports Node.js $(node --version): install 22 or 24." >&2
		;;
	esac
	exit 0
fi
echo "make $target needs these missing programs: $missing." >&2

if [ "$alone" = yes ] && [ "$may" = yes ]; then
	echo "Installing it:" >&2
	echo "    $(installing "$as_root")" >&2
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	if ! sh -c "$(installing "$unasked")" >"$log" 2>&1 </dev/null; then
		tail -n 20 "$log" >&2
		echo "The installation failed. Run the command above yourself, and then make $target again." >&2
		exit 1
	fi
	look
	[ -n "$missing" ] || exit 0
	echo "After the installation these are still missing: $missing." >&2
	exit 1
fi

if [ -n "$rest" ]; then
	echo "Install these yourself, because no package provides them here: $rest." >&2
fi
if [ -n "$wanted$commands" ]; then
	how="Run it"
	case $(id -u):$as_root:$manager:$wanted:$commands in
	0:* | *:*brew:* | *:?*:*:*:* | *::*::*export*) ;;
	*) how="Run it as root, or ask those who administer this machine to" ;;
	esac
	printf 'This installs it. %s, and make %s again:\n\n    %s\n\n' "$how" "$target" "$(installing "$as_root")" >&2
fi
exit 1
