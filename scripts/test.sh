#!/bin/sh
# test.sh: runs all tests, and prints how long each stage took. A missing tool is a failure and never skips a test.
# PACKAGES="./shared/domain/job …" runs only these packages' tests. TEST_ALL=yes, which continuous integration sets,
# uses the race detector where goroutines share memory, also tests the gateway with CUTROOM_NET_HTTP=true, and
# runs what package thorough leaves out: checks of the stacks by cdk-nag and cfn-lint, half of the encodings of videos,
# and the largest simulations.
set -eu
cd "$(dirname "$0")/.."
. scripts/stages.sh

scripts/preflight.sh test

# Some tests mount a small disk in order to fill it. Without root, run everything as root of a user namespace. System
# packages cannot be installed there, so install the tools first.
if [ "$(uname)" = Linux ] && [ "$(id -u)" -ne 0 ]; then
	took "tools of the tests" scripts/install-test-tools.sh
	exec unshare --map-root-user --mount "scripts/$(basename "$0")"
fi

# The server runs FFmpeg at low priority. While code is being compiled, FFmpeg would make hardly any progress, so run
# everything at that priority.
if [ "$(nice 2>/dev/null || echo 18)" -lt 18 ]; then
	exec nice -n 18 "scripts/$(basename "$0")"
fi

rm -rf test-output
mkdir test-output # for logs and, if all tests run again, for screenshots of pages

# watched are packages whose goroutines share memory, which import sync. Excluded are packages that draw pictures on
# one goroutine or start programs, and most adapters. With the race detector, their tests take several times as long.
# `make race` includes all packages.
watched=$("$GO" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Imports}}{{end}}' ./shared/domain/... \
	./shared/service/... ./shared/engine/... ./shared/platform/... ./shared/client ./shared/adapter/sqlite ./shared/adapter/diskblob |
	grep -e '[[ ]sync[] /]' | cut -d ' ' -f 1 |
	grep -v -e /engine/preview -e /engine/ffmpeg -e /domain/media -e /platform/lambda -e /platform/sandbox)
# Start the slowest packages first.
slow=$(echo "$watched" | grep -x -e '.*/service/gateway' -e '.*/service/api' -e '.*/service/realtime' -e '.*/engine/engineserver' \
	-e '.*/adapter/sqlite' -e '.*/service/batches')
watched=$(echo "$slow" && echo "$watched" | grep -vxF "$slow")
unwatched=$("$GO" list ./... | grep -vxF "$watched")
build=released compiled=./...
[ -z "${TEST_ALL:-}" ] || { build=racing; compiled=$unwatched; }
pictures=$(echo "$unwatched" | grep -e /engine/preview -e /engine/ffmpeg)
# These are all packages that no other stage tests.
plain=$(echo "$unwatched" | grep -vxF "$pictures" | grep -vx -e 'cutroom/infra.*' -e cutroom/cmd/cutroom \
	-e cutroom/cmd/cutroom/consoletest -e cutroom/functions -e cutroom/docs -e cutroom/scripts -e cutroom/shared)

# trusting HOW FOLDERS FLAGS… PACKAGES…: tests packages. HOW is "released test" or "racing test". Go reuses a passed
# test's result until one of the dependencies that it knows of changes. unseen.sh computes a digest of the others, and
# the digest becomes a -skip pattern that matches no test. So if one of those changes, the command changes, and Go runs
# the test again. FOLDERS are left out of the digest, because the tests do not depend on them; "." leaves out
# everything.
trusting() {
	how=$1
	# shellcheck disable=SC2086 # a list of folders
	unseen=$(scripts/unseen.sh $2) || return 1
	shift 2
	tested "$how" -vet=off -timeout "$limit" -skip "^unseen $unseen$" "$@"
}

if [ -n "${PACKAGES:-}" ]; then
	took "tools of the tests" scripts/install-test-tools.sh
	# shellcheck disable=SC2086 # a list of packages
	chosen=$("$GO" list $PACKAGES)
	for package in $chosen; do
		if echo "$watched" | grep -qxF "$package"; then
			took "go test $package" trusting "$build test" . "$package"
		else
			took "go test $package" trusting "released test" "" "$package"
		fi
	done
	exit
fi

# If a stage fails, make the background stages stop too.
trap 'touch test-output/tools-failed; wait; report_failures' EXIT

# Install the tools while the code is compiled and while tests run that do not need the tools.
install_tools() {
	scripts/install-test-tools.sh || { touch test-output/tools-failed; return 1; }
	touch test-output/tools-installed
}
# with_tools COMMAND…: waits until the tools are installed, then runs the command.
with_tools() {
	until [ -e test-output/tools-installed ]; do
		[ ! -e test-output/tools-failed ] || return 1
		sleep 1
	done
	"$@"
}
install_tools >test-output/tools.log 2>&1 &
tools=$!

# Compile everything before the stages run concurrently. The compiler takes less processor time if it collects garbage
# less often. Large packages wait for one another, so two builds run at a time.
# shellcheck disable=SC2086 # lists of packages
compile() {
	[ -z "${TEST_ALL:-}" ] || GOGC=1600 GOMEMLIMIT=2GiB racing list -test -export $watched >test-output/watched &
	watching=$!
	GOGC=1600 GOMEMLIMIT=2GiB released list -test -export $compiled >test-output/unwatched && wait "$watching"
}
took compile compile

# Link the programs of cmd once, for all packages that test them: see programtest.Build. Replace a program only if it
# has changed, because Go reuses a test's results only while the program's date stays the same.
export TEST_PROGRAMS="$PWD/.tools/programs"
link_programs() {
	released build -buildvcs=false -o "$TEST_PROGRAMS/built/" ./cmd/cutroom ./cmd/worker ./cmd/realtime ./cmd/media || return 1
	for program in cutroom worker realtime media; do
		cmp -s "$TEST_PROGRAMS/built/$program" "$TEST_PROGRAMS/$program" && continue
		cp "$TEST_PROGRAMS/built/$program" "$TEST_PROGRAMS/built/new" &&
			mv "$TEST_PROGRAMS/built/new" "$TEST_PROGRAMS/$program" || return 1
	done
}
took programs link_programs

# Many tests use generated media. Generate them only once for each version of ffmpeg: see mediatest.
TEST_MEDIA="$PWD/.tools/media/$(ffmpeg -version | cksum | cut -d ' ' -f 1)"
export TEST_MEDIA
mkdir -p "$TEST_MEDIA"

# Go does not reuse the results of tests that write screenshots, so write them only if all tests run again anyway.
artifacts=''
case "${CI:-} ${GOFLAGS:-}" in
" "*-count=* | [!\ ]*) artifacts='-artifacts -outputdir test-output' ;;
esac

server() {
	# shellcheck disable=SC2086 # several flags
	with_tools trusting "released test" "infra functions events bench" $artifacts ./cmd/cutroom
}
console() {
	# shellcheck disable=SC2086 # several flags
	with_tools trusting "released test" "infra functions events bench" $artifacts ./cmd/cutroom/consoletest
}
functions() {
	with_tools trusting "released test" bench ./functions
}
engine() {
	with_tools engine_server
}
# If all tests run again, run these too. Otherwise run them only if a dependency has changed since they passed.
engine_server() {
	passed=.tools/engine/passed
	dependencies=$(scripts/unseen.sh bench clients cmd docs events functions infra shared testdata) || return 1
	if [ -z "$artifacts" ] && [ "$(cat $passed 2>&1)" = "$dependencies" ]; then
		echo "ok  	gpu	(cached)"
		return
	fi
	rm -f $passed
	recorded scripts/test-engine.sh .tools/engine --ignore tests/models || return 1
	echo "$dependencies" >$passed
}
deploy() {
	with_tools trusting "released test" bench -p 2 ./infra/...
}
programs() {
	# shellcheck disable=SC2086 # a list of packages
	with_tools trusting "released test" bench -p 2 $plain
}
services() {
	# shellcheck disable=SC2086 # a list of packages
	with_tools trusting "$build test" . -p 2 $watched || return 1
	[ -z "${TEST_ALL:-}" ] ||
		CUTROOM_NET_HTTP=true trusting "$build test" . ./shared/platform/httpserver ./shared/service/gateway
}
pictures() {
	# These tests allocate many pictures.
	# shellcheck disable=SC2086 # a list of packages
	GOGC=400 trusting "released test" . -p 2 $pictures
}
# These tests read the entire repository, also through Git and Go, so Go cannot know their dependencies.
repository() {
	with_tools tested "released test" -count=1 -vet=off -timeout "$limit" ./docs ./scripts ./shared
}

# Run five stages concurrently, which test at most eight packages at a time, and begin with the longest. With more
# packages at a time, each test would only take longer.
stages="deploy server services console functions programs engine"
running=''
for n in 1 2 3 4; do
	# shellcheck disable=SC2086 # a list of stages
	each_once $stages >"test-output/stages-$n.log" 2>&1 &
	running="$running $n:$!"
done
took "go test of the repository" repository
took "go test of pictures" pictures
# shellcheck disable=SC2086 # a list of stages
took "stages that had not started" each_once $stages
took "tools of the tests, the rest" finished tools.log "$tools"
for one in $running; do
	took "stages of sequence ${one%:*}, the rest" finished "stages-${one%:*}.log" "${one#*:}"
done
