#!/bin/sh
# test-bare.sh: follows the README's first steps on a bare machine that has only a minimal Debian and Go: first as
# root, without any cache, and then as an ordinary user without sudo. The machine is a folder with a root file system.
# It runs in its own namespaces, so its mounts and processes end with the script.
#
# SUITE is Debian's release (this machine's, or bookworm). USERS lists the users ("root newcomer"), and PACKAGES the
# packages for make test. debootstrap's result is kept in .tools/bare for a month. Packages come from the same mirrors
# as this machine's.
set -eu
cd "$(dirname "$0")/.."
. scripts/stages.sh
scripts/preflight.sh test-bare

host=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
suite=${SUITE:-$(sed -n 's/^ID=debian$/'"$host"'/p' /etc/os-release)}
suite=${suite:-bookworm}
base=$PWD/.tools/bare/$suite.tar
folder=$(mktemp -d /var/tmp/cutroom-bare-XXXXXX)
root=$folder/root
child=
end() {
	if [ -n "$child" ]; then
		kill -KILL "$child" 2>/dev/null || true
		wait "$child" 2>/dev/null || true
	fi
	rm -rf --one-file-system "$folder"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# apart COMMAND…: runs a command in its own process and mount namespaces. Both end with the command or with this
# script.
apart() {
	# env restores the default signals: a shell makes background processes ignore Ctrl-C.
	env --default-signal=INT,QUIT unshare --mount --propagation private --pid --fork --kill-child "$@" </dev/null &
	child=$!
	status=0
	wait "$child" || status=$?
	child=''
	return "$status"
}

# inside USER COMMAND: runs a command on the bare machine, in a login shell.
inside() {
	apart sh scripts/bare/enter.sh "$root" "$@"
}

# sources prints the URLs from which this machine gets Debian's packages for the release.
sources() {
	# shellcheck disable=SC2016 # fields of apt
	apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
		awk -v host="$host" -v suite="$suite" '$1 == "Debian" && sub("^" host, suite, $3) { print "deb", $2, $3, "main" }' | sort -u
}

# bootstrapped creates the root file system with debootstrap, and keeps a copy.
bootstrapped() {
	mkdir -p "${base%/*}" "$folder/base"
	# If no mirror is found, debootstrap uses Debian's default.
	mirror=$(sources | awk -v suite="$suite" '$3 == suite { print $2; exit }')
	# shellcheck disable=SC2086 # empty means no argument
	apart sh -c 'mount -t proc proc /proc && exec debootstrap --variant=minbase "$@"' sh "$suite" "$folder/base" $mirror \
		>"$folder/log" 2>&1 || { tail -n 20 "$folder/log" >&2; return 1; }
	rm -rf "$folder"/base/var/cache/apt/archives/*.deb
	tar -C "$folder/base" -cf "$base.part" .
	mv "$base.part" "$base"
	rm -rf "$folder/base"
}

# configured gives the bare machine this machine's network settings: name servers, proxies, certificates, and package
# sources.
configured() {
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
	sources >"$folder/sources"
	[ ! -s "$folder/sources" ] || cp "$folder/sources" "$root/etc/apt/sources.list"
	apt-config dump | grep -E '^Acquire::(https?::|Check-|Retries)' >"$root/etc/apt/apt.conf.d/99machine" || true
	mkdir -p "$root/usr/local/share/ca-certificates"
	for certificate in /usr/local/share/ca-certificates/*.crt; do
		[ ! -e "$certificate" ] || cp "$certificate" "$root/usr/local/share/ca-certificates/"
	done
	for file in /etc/pip.conf ~/.pip/pip.conf ~/.config/pip/pip.conf; do
		[ ! -e "$file" ] || cp "$file" "$root/etc/pip.conf"
	done
	# The bare machine trusts this machine's certificates as system certificates. They may include a proxy's.
	env | sed -n "s/'/'\\\\''/g; s/^\([A-Za-z_]*_PROXY\|[a-z_]*_proxy\|PIP_[A-Z_]*URL\|PIP_CERT\|NODE_EXTRA_CA_CERTS\|REQUESTS_CA_BUNDLE\|NPM_CONFIG_[A-Z_]*\|npm_config_[a-z_]*\)=\(.*\)/export \1='\2'/p" \
		>"$root/etc/profile.d/machine.sh"
	for variable in GOPROXY GOSUMDB GONOSUMDB GONOPROXY GOPRIVATE GOINSECURE; do
		echo "export $variable='$("$GO" env "$variable")'"
	done >>"$root/etc/profile.d/machine.sh"
}

# machine creates a new bare machine: with Go installed as go.dev says, an ordinary user, and a repository to clone.
machine() {
	rm -rf --one-file-system "$root"
	mkdir "$root"
	tar -C "$root" -xf "$base"
	configured
	cp -a "$("$GO" env GOROOT)" "$root/usr/local/go"
	ln -s /usr/local/go/bin/go /usr/local/go/bin/gofmt "$root/usr/local/bin/"
	inside root "useradd --create-home --shell /bin/bash newcomer"
	if [ -e ~/.npmrc ]; then
		cp ~/.npmrc "$root/root/"
		cp ~/.npmrc "$root/home/newcomer/"
		chmod 644 "$root/home/newcomer/.npmrc"
	fi
	for program in git make curl python3 node gcc ffmpeg sudo; do
		if inside root "command -v $program" >/dev/null; then
			echo "The bare machine has $program, but should not." >&2
			return 1
		fi
	done
	cp "$folder/cutroom.bundle" "$root/srv/"
}

# first prints the first installation command for Debian from the docs.
first() {
	# shellcheck disable=SC2016 # quotes from the page
	sed -n 's/^| Debian[^|]*| `\([^`]*\)`.*/\1/p' docs/install.md | head -n 1
}

# prepared runs that command as root, and clones the repository as a user.
prepared() {
	command=$(first)
	[ -n "$command" ] || { echo "The README has no command for Debian." >&2; return 1; }
	echo "    # $command"
	inside root "$command" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" >&2; return 1; }
	inside "$1" "git clone -q /srv/cutroom.bundle cutroom"
}

# fails COMMAND FILE…: checks that the user's command fails before it creates any of the files, and prints a command
# for root. Then root runs that command.
fails() {
	if inside newcomer "cd cutroom && $1" >"$folder/failure" 2>&1; then
		echo "$1 did not fail." >&2
		return 1
	fi
	cat "$folder/failure"
	command=$(sed -n 's/^    \([^ ].*\)/\1/p' "$folder/failure")
	shift
	for file in "$@"; do
		if [ -e "$root/home/newcomer/$file" ]; then
			echo "$file was made before the missing tools were reported." >&2
			return 1
		fi
	done
	inside root "$command" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" >&2; return 1; }
}

# Test the working tree including uncommitted changes.
tree=$(git stash create)
commit=$(git -c user.name=bare -c user.email=bare@localhost commit-tree -m "The tree" "${tree:-HEAD}^{tree}")
git init -q --bare --initial-branch main "$folder/git"
git push -q "$folder/git" "$commit:refs/heads/main"
git -C "$folder/git" bundle create -q "$folder/cutroom.bundle" HEAD main

test=$(printf 'make test PACKAGES=%s' "${PACKAGES:-./shared/domain/job}")
if [ -z "$(find "$base" -mtime -30 2>/dev/null)" ]; then
	took "debootstrap of $suite" bootstrapped
fi

as_root() {
	echo "As root, without any cache:"
	took "a bare machine" machine
	took "install as in the README" prepared root
	took "make run, and edits" inside root "cd cutroom && scripts/bare/newcomer.sh"
	took "$test" inside root "cd cutroom && $test"
	mkdir "$folder/caches"
	for cache in go .cache .npm; do
		[ ! -e "$root/root/$cache" ] || mv "$root/root/$cache" "$folder/caches/"
	done
}

as_newcomer() {
	echo "As an ordinary user without sudo:"
	took "a bare machine" machine
	took "install as in the README" prepared newcomer
	took "make run fails, and root installs" fails "make run" cutroom/bin go .cache
	# Keep downloads, but no compiled code: it contains the path of the modules, so it could hardly be reused.
	if [ -e "$folder/caches" ]; then
		echo "From here on with the earlier downloads."
		mv "$folder/caches" "$root/home/newcomer/caches"
		inside root "cd /home/newcomer && chown -R newcomer: caches && mv caches/* caches/.[!.]* ."
	fi
	took "make run, and edits" inside newcomer "cd cutroom && scripts/bare/newcomer.sh"
	took "$test fails, and root installs" fails "$test" cutroom/test-output cutroom/.tools
	took "$test" inside newcomer "cd cutroom && $test"
}

for who in ${USERS:-root newcomer}; do
	"as_$who"
done
