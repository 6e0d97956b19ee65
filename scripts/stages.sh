# shellcheck shell=sh
# Functions for the scripts that lint and test. They source this file.

GO=${GO:-go}
# limit is the time limit for one package's tests. It catches only hangs, because each wait in a test is much shorter:
# see testkit/await.
limit=20m
# Compiling without caches takes longer than running all tests. Omitting debug data saves a fifth of that. The generated
# code of AWS is large and seldom runs, so functions are not inlined there, which halves the time to compile its SDK.
undebugged="-ldflags=-s -gcflags=all=-dwarf=false '-gcflags=github.com/aws/...=-l -dwarf=false'"

# took NAME COMMAND…: runs the command and prints its duration.
took() {
	name=$1
	shift
	began=$(date +%s)
	"$@" || { echo "failed: $name" >&2; exit 1; }
	echo "--- $name: $(($(date +%s) - began)) s"
}

# finished LOG PROCESS: waits for a background process, then prints its output.
finished() {
	status=0
	wait "$2" || status=$?
	cat "test-output/$1"
	return "$status"
}

# released runs go with the build flags of the functions and images, so that all of them share Go's build cache.
released() {
	CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath $undebugged" "$GO" "$@"
}

# racing runs go with the race detector, except for packages that use only one goroutine: the pictures, compression,
# and SQLite, which is C translated to Go and would take six times as long. At exit, programs wait for late races for
# 50 ms instead of a second.
racing() {
	command=$1
	shift
	GORACE="atexit_sleep_ms=50 ${GORACE:-}" CGO_ENABLED=1 GOFLAGS="${GOFLAGS:-} $undebugged" "$GO" "$command" -race \
		'-gcflags=modernc.org/sqlite/lib=-race=false -d=checkptr=0 -dwarf=false' \
		'-gcflags=modernc.org/memory=-race=false -d=checkptr=0 -dwarf=false' \
		'-gcflags=modernc.org/libc/...=-race=false -d=checkptr=0 -dwarf=false' \
		'-gcflags=cutroom/shared/engine/preview/...=-race=false -d=checkptr=0 -dwarf=false' \
		'-gcflags=golang.org/x/image/...=-race=false -d=checkptr=0 -dwarf=false' \
		'-gcflags=image/...=-race=false -d=checkptr=0 -dwarf=false' \
		'-gcflags=compress/...=-race=false -d=checkptr=0 -dwarf=false' "$@"
}

# failures LOG: adds the failures in a go test log to test-output/failed. Of any other log, it adds the last lines.
failures() {
	found=$(awk -f scripts/failures.awk "$1")
	echo "${found:-$(tail -n 5 "$1")}" >>test-output/failed
}

# recorded COMMAND…: runs the command. If it fails, its failures are recorded for report_failures.
recorded() (
	log=$(mktemp test-output/recorded.XXXXXX)
	{ "$@" 2>&1 || touch "$log.failed"; } | tee "$log"
	if [ ! -e "$log.failed" ]; then
		rm "$log"
		exit
	fi
	rm "$log.failed"
	failures "$log"
	exit 1
)

# report_failures prints all recorded failures again at the end, because by then they have scrolled far up.
report_failures() {
	[ ! -s test-output/failed ] || { echo "--- FAILED:"; cat test-output/failed; } >&2
}

# tested HOW FLAGS… PACKAGES…: runs tests. HOW is "released test" or "racing test". If TRY_AGAIN is set and
# failed-tests.awk allows it, each failed test runs once more without the others. Tests that then pass are listed in
# test-output/unsteady. tested runs in a subshell, so that its variables do not affect callers.
# shellcheck disable=SC2086 # a command with arguments
tested() (
	how=$1
	shift
	if [ -z "${TRY_AGAIN:-}" ]; then
		recorded $how "$@"
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
		recorded $how -vet=off -timeout "$limit" -count=1 -run "^$test\$" "$package" || { failures "$first"; exit 1; }
		echo "$package $test" >>test-output/unsteady
	done
)

# each_once STAGE…: runs the stages one after the other, each in a subshell, and prints how long each took. It skips
# stages that a concurrent each_once has started. If a stage fails, the others still run, and each_once fails at the
# end.
each_once() (
	failed=0
	for stage; do
		mkdir "test-output/started-$stage" 2>/dev/null || continue
		began=$(date +%s)
		("$stage") || failed=1
		echo "--- $stage: $(($(date +%s) - began)) s"
	done
	exit "$failed"
)
