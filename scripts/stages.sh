# shellcheck shell=sh
# Functions for the scripts that lint and test, which source this file.

GO=${GO:-go}
# limit is the time limit for the tests of one package. Each wait in them is much shorter: see testkit/await.
limit=20m
# Without caches, compiling takes longer than all tests. Omitting debug information saves a fifth of
# that, and optimizing CDK's large bindings takes longer than running them.
undebugged="-ldflags=-w -gcflags=all=-dwarf=false '-gcflags=github.com/aws/aws-cdk-go/...=-N -l -dwarf=false'"

# took NAME COMMAND…: runs the command and prints its duration.
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

# released builds with the flags of functions and containers, so that all of them share Go's cache.
released() {
	CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath $undebugged" "$GO" "$@"
}

# raced tests under the race detector. It excludes packages that work on one goroutine: SQLite,
# which is C translated to Go and takes six times as long, pictures and compression. At the end,
# programs wait 50 ms for late races, not the usual second.
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

# failures LOG: appends the failures in a log of go test to test-output/failed, and the last lines of any other log.
failures() {
	found=$(awk -f scripts/failures.awk "$1")
	echo "${found:-$(tail -n 5 "$1")}" >>test-output/failed
}

# recorded COMMAND…: runs the command. If it fails, report_failures repeats its failures.
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

# report_failures prints all failures again at the end, because they may be far above by then.
report_failures() {
	[ ! -s test-output/failed ] || { echo "--- FAILED:"; cat test-output/failed; } >&2
}

# tested HOW FLAGS… PACKAGES…: runs tests, where HOW is "released test" or "raced". If TRY_AGAIN is set, each failed
# test runs once more without the others, if failed-tests.awk allows it. Tests that pass then are listed in
# test-output/unsteady. It runs in a subshell, so that its variables do not reach its callers.
# shellcheck disable=SC2086 # a command
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

# in_turn STAGE…: runs the stages, each in a subshell, and prints their durations. It fails at the
# end if any stage failed.
in_turn() (
	failed=0
	for stage; do
		began=$(date +%s)
		("$stage") || failed=1
		echo "--- $stage: $(($(date +%s) - began)) s"
	done
	exit "$failed"
)
