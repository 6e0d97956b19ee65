# shellcheck shell=sh
# What the scripts that check and test share. It is read by them, not run.

GO=${GO:-go}
# Without caches, compiling takes longer than all tests. Nobody debugs what is built
# for a test: leaving out what debuggers read saves a fifth of it. To optimize CDK's
# large bindings takes longer than they run.
undebugged="-ldflags=-w -gcflags=all=-dwarf=false '-gcflags=github.com/aws/aws-cdk-go/...=-N -l -dwarf=false'"

# took NAME COMMAND…: runs the command and prints how long it took.
took() {
	name=$1
	shift
	began=$(date +%s)
	"$@" || { echo "failed: $name" >&2; exit 1; }
	echo "--- $name: $(($(date +%s) - began)) s"
}

# finished LOG PROCESS: waits for what went on beside and prints what it said.
finished() {
	status=0
	wait "$2" || status=$?
	cat "test-output/$1"
	return "$status"
}

# formatted fails on code that gofmt would change.
formatted() {
	unformatted=$("$("$GO" env GOROOT)/bin/gofmt" -l cmd functions infra shared bench testdata docs scripts)
	[ -z "$unformatted" ] || { echo "not gofmt-ed: $unformatted" >&2; return 1; }
}

# released builds as functions and containers are built, so that what one compiles
# the others need not.
released() {
	CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath $undebugged" "$GO" "$@"
}

# raced tests under the race detector. SQLite is C made into Go, and used by one
# goroutine at a time: to watch its memory takes six times as long and shows nothing
# of the code that calls it.
raced() {
	GOFLAGS="${GOFLAGS:-} $undebugged" "$GO" test -race '-gcflags=modernc.org/sqlite/lib=-race=false -dwarf=false' \
		'-gcflags=modernc.org/libc/...=-race=false -dwarf=false' "$@"
}
