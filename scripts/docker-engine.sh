#!/bin/sh
# docker-engine.sh start   makes sure that a Docker engine responds. If none responds and this is Linux with root, it
#                          installs and starts one and prints "started". Otherwise it prints nothing.
# docker-engine.sh stop    stops only the engine that start has started.
#
# The engine's process id and log are in ENGINE_FOLDER (/run/cutroom-docker).
set -eu
cd "$(dirname "$0")"
folder=${ENGINE_FOLDER:-/run/cutroom-docker}
pid=$folder/dockerd.pid
log=$folder/dockerd.log

# answers reports whether a Docker engine responds to the docker client.
answers() {
	command -v docker >/dev/null 2>&1 || return 1
	# Limit the wait for an engine that hangs. A Mac has no timeout command.
	bound=
	if command -v timeout >/dev/null 2>&1; then bound="timeout 20"; fi
	$bound docker version --format '{{.Server.Version}}' >/dev/null 2>&1
}

# ours reports whether the process in the pid file is the engine that "start" has started.
ours() {
	[ -s "$pid" ] && [ "$(cat "/proc/$(cat "$pid")/comm" 2>/dev/null)" = dockerd ]
}

start() {
	if answers; then
		return
	fi
	if [ "$(uname)" != Linux ]; then
		echo "No Docker engine responds: start Docker Desktop, colima or another engine, and try again." >&2
		return 1
	fi
	if [ "$(id -u)" -ne 0 ]; then
		echo "No Docker engine responds. As root, start one (systemctl start docker) or run this as root." >&2
		return 1
	fi
	if ! command -v dockerd >/dev/null 2>&1 || ! command -v docker >/dev/null 2>&1; then
		# On some systems, Docker's package only recommends iptables and the certificates, so install them explicitly.
		./install-package.sh docker apt-get="docker.io iptables ca-certificates" dnf=moby-engine pacman=docker apk=docker >&2
	fi
	mkdir -p "$folder"
	if ! ours; then
		# A separate session keeps Ctrl-C away from the engine. The test receives it, and then stops the engine
		# cleanly.
		setsid dockerd --pidfile "$pid" --storage-driver overlay2 >"$log" 2>&1 </dev/null &
	fi
	tries=0
	until answers; do
		tries=$((tries + 1))
		if [ "$tries" -gt 60 ] || { [ "$tries" -gt 5 ] && ! ours; }; then
			tail -n 20 "$log" >&2
			echo "The Docker engine did not start." >&2
			return 1
		fi
		sleep 1
	done
	echo started
}

stop() {
	if ! ours; then
		return
	fi
	process=$(cat "$pid")
	kill "$process"
	tries=0
	while [ -e "/proc/$process" ]; do
		tries=$((tries + 1))
		if [ "$tries" -gt 60 ]; then
			echo "The Docker engine ($process) did not stop." >&2
			return 1
		fi
		sleep 1
	done
	rm -rf "$folder"
}

case ${1:-} in
start | stop) "$1" ;;
*)
	sed -n '2,7s/^# //p' "$0" >&2
	exit 2
	;;
esac
