#!/bin/sh
# install-package.sh NAME MANAGER=PACKAGES…: installs a program with the system's package manager. It prints the
# command that it runs, and never asks questions. It fails if no argument names this system's package manager.
set -eu
name=$1
shift

# If sudo needs a password, fail and print the command for the user to run.
as_root=
unasked=
if [ "$(id -u)" -ne 0 ]; then
	as_root="sudo "
	unasked="sudo -n "
fi
manager=
for candidate in apt-get dnf pacman apk brew; do
	if command -v "$candidate" >/dev/null 2>&1; then
		manager=$candidate
		break
	fi
done
packages=
for choice in "$@"; do
	case $choice in
	"$manager="*) packages=${choice#*=} ;;
	esac
done
if [ -z "$manager" ] || [ -z "$packages" ]; then
	echo "$name is missing, and no known package manager was found: install $name and try again." >&2
	exit 1
fi
case $manager in
apt-get) command="sh -c 'apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages'" ;;
dnf) command="dnf install -y $packages" ;;
pacman) command="pacman -S --noconfirm $packages" ;;
apk) command="apk add $packages" ;;
brew)
	command="brew install $packages"
	as_root=
	unasked=
	;;
esac

echo "$name is missing. Installing it:" >&2
echo "    $as_root$command" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! sh -c "$unasked$command" >"$log" 2>&1 </dev/null; then
	tail -n 20 "$log" >&2
	echo "The installation failed. Run the command above as root, and try again." >&2
	exit 1
fi
