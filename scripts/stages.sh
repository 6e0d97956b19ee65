# shellcheck shell=sh
# Functions that the scripts for checks and tests share. They source this file.

GO=${GO:-go}
# Without caches, compiling takes longer than all tests. Nobody debugs test binaries:
# leaving out debug information saves a fifth of the time. Optimizing CDK's large bindings
# takes longer than running them.
undebugged="-ldflags=-w -gcflags=all=-dwarf=false '-gcflags=github.com/aws/aws-cdk-go/...=-N -l -dwarf=false'"

# took NAME COMMAND…: runs the command and prints how long it took.
took() {
	name=$1
	shift
	began=$(date +%s)
	"$@" || { echo "failed: $name" >&2; exit 1; }
	echo "--- $name: $(($(date +%s) - began)) s"
}

# finished LOG PROCESS: waits for a background process and prints its output.
finished() {
	status=0
	wait "$2" || status=$?
	cat "test-output/$1"
	return "$status"
}

# formatted fails on code that gofmt would change.
formatted() {
	unformatted=$("$("$GO" env GOROOT)/bin/gofmt" -l cmd functions infra shared bench testdata docs scripts packaging)
	[ -z "$unformatted" ] || { echo "not gofmt-ed: $unformatted" >&2; return 1; }
}

# released builds as functions and containers are built, so that what one compiles need
# not be compiled for the others.
released() {
	CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath $undebugged" "$GO" "$@"
}

# raced tests under the race detector. SQLite is C translated to Go, and used by one
# goroutine at a time: watching its memory takes six times as long and reveals nothing
# about the code that calls it. What draws and reads pictures, and what packs bytes, works
# on one goroutine too, on memory that it shares with nobody. Instead of the usual second,
# a program waits 50 ms at its end for others to race with.
raced() {
	GORACE="atexit_sleep_ms=50 ${GORACE:-}" CGO_ENABLED=1 GOFLAGS="${GOFLAGS:-} $undebugged" "$GO" test -race \
		'-gcflags=modernc.org/sqlite/lib=-race=false -d=checkptr=0 -dwarf=false' \
		'-gcflags=modernc.org/memory=-race=false -d=checkptr=0 -dwarf=false' \
		'-gcflags=modernc.org/libc/...=-race=false -d=checkptr=0 -dwarf=false' \
		'-gcflags=cutroom/shared/engine/preview/...=-race=false -d=checkptr=0 -dwarf=false' \
		'-gcflags=golang.org/x/image/...=-race=false -d=checkptr=0 -dwarf=false' \
		'-gcflags=image/...=-race=false -d=checkptr=0 -dwarf=false' \
		'-gcflags=compress/...=-race=false -d=checkptr=0 -dwarf=false' "$@"
}

# failures LOG: writes to test-output/failed what in the log tells of a failure. Of a log that is
# none of go test these are its last lines.
failures() {
	found=$(awk -f scripts/failures.awk "$1")
	echo "${found:-$(tail -n 5 "$1")}" >>test-output/failed
}

# told COMMAND…: runs the command, and keeps what it prints if it fails, for retold.
told() (
	log=$(mktemp test-output/told.XXXXXX)
	{ "$@" 2>&1 || touch "$log.failed"; } | tee "$log"
	if [ ! -e "$log.failed" ]; then
		rm "$log"
		exit
	fi
	rm "$log.failed"
	failures "$log"
	exit 1
)

# retold prints at the end of all what has failed, which may be far above by then.
retold() {
	[ ! -s test-output/failed ] || { echo "--- FAILED:"; cat test-output/failed; } >&2
}

# tested HOW FLAGS… PACKAGES…: runs tests, HOW being "released test" or "raced". Where
# TRY_AGAIN is set, tests that fail are run once more by themselves, if failed-tests.awk
# allows it. Those that pass then are written to test-output/unsteady: they are to be mended,
# and until then do not hold up a change that has nothing to do with them.
# It is a shell of its own, so that its variables are not those of its callers.
# shellcheck disable=SC2086 # a command
tested() (
	how=$1
	shift
	if [ -z "${TRY_AGAIN:-}" ]; then
		told $how "$@"
		exit
	fi
	first=$(mktemp test-output/first-try.XXXXXX)
	if $how "$@" >"$first" 2>&1; then
		cat "$first"
		exit
	fi
	if ! failed=$(awk -f scripts/failed-tests.awk "$first"); then
		cat "$first"
		failures "$first"
		exit 1
	fi
	sed 's/^/first try: /' "$first"
	echo "$failed" | while read -r package test; do
		told $how -vet=off -timeout 60m -count=1 -run "^$test\$" "$package" || { failures "$first"; exit 1; }
		echo "$package $test" >>test-output/unsteady
	done
)

# in_turn STAGE…: runs all, each in a shell of its own, and prints how long each took.
in_turn() (
	failed=0
	for stage; do
		began=$(date +%s)
		("$stage") || failed=1
		echo "--- $stage: $(($(date +%s) - began)) s"
	done
	exit "$failed"
)
