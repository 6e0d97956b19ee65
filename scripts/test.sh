#!/bin/sh
# All checks and tests, and how long each took. A missing tool is a failure, never a skip.
# PACKAGES="./shared/domain/job …" runs only the format, the tools and the tests of these
# packages.
set -eu
cd "$(dirname "$0")/.."
. scripts/stages.sh

scripts/preflight.sh test

# Some tests mount a small disk to fill it, which needs root, or root in a user namespace
# of its own. Nothing can be installed for the system there.
if [ "$(uname)" = Linux ] && [ "$(id -u)" -ne 0 ]; then
	took "tools of the tests" scripts/install-test-tools.sh
	exec unshare --map-root-user --mount "scripts/$(basename "$0")"
fi

# What the server edits with is nicer than the server (platform/fence). Beside compilers and
# linters it would hardly run: here it shares the processors with all others.
if [ "$(nice 2>/dev/null || echo 18)" -lt 18 ]; then
	exec nice -n 18 "scripts/$(basename "$0")"
fi

took gofmt formatted
# Logs are there, and the screenshots of pages where all tests are run anew.
rm -rf test-output
mkdir test-output
# The race detector takes several times as long, and compiles all anew. It watches
# what goroutines share within a process: not what draws and reads pictures on one,
# nor what runs in programs of its own (ffmpeg, and the tests of programs, which run as
# they are built for users), nor the adapters of AWS, whose records are shared by
# conditional writes. `make race` watches all. Go keeps the results of what has not changed
# since: these tests start no program that is built here. GOFLAGS=-count=1 runs them again.
watched=$("$GO" list ./shared/domain/... ./shared/service/... ./shared/engine/... ./shared/platform/... ./shared/client/... \
	./shared/adapter/sqlite/... ./shared/adapter/diskblob/... ./shared/adapter/prometheus/... |
	grep -v -e /engine/preview -e /engine/ffmpeg -e /domain/media -e /platform/lambda -e /platform/fence)
# What takes longest begins first.
slow=$(echo "$watched" | grep -x -e '.*/service/gateway' -e '.*/service/api' -e '.*/service/realtime' -e '.*/engine/engineserver' \
	-e '.*/adapter/sqlite' -e '.*/service/batches')
watched=$(echo "$slow" && echo "$watched" | grep -vxF "$slow")
pictures=$("$GO" list ./shared/engine/... | grep -vxF "$watched")
# What takes longest begins first.
plain=$("$GO" list ./cmd/cutroom/... ./cmd/... ./shared/adapter/... ./functions/... ./clients/... ./bench/... \
	./docs/... ./scripts/... ./shared/... | grep -vxF -e "$watched" -e "$pictures" |
	grep -vx -e cutroom/cmd/cutroom -e cutroom/cmd/cutroom/consoletest -e cutroom/functions -e cutroom/docs -e cutroom/scripts \
		-e cutroom/shared)
# trusting HOW FOLDERS FLAGS… PACKAGES…: tests packages, "released test" or "raced". Go keeps
# the results of those that passed until something changes. What Go does not see of that is
# in a flag: it names no test to skip, and results are kept for the same flags. The folders
# have nothing to do with these packages; "." is all of them, for tests that start programs
# of the machine and of the tools alone.
trusting() {
	how=$1
	# shellcheck disable=SC2086 # a list of folders
	unseen=$(scripts/unseen.sh $2) || return 1
	shift 2
	tested "$how" -vet=off -timeout 60m -skip "^unseen $unseen$" "$@"
}
if [ -n "${PACKAGES:-}" ]; then
	took "tools of the tests" scripts/install-test-tools.sh
	# shellcheck disable=SC2086 # a list of packages
	chosen=$("$GO" list $PACKAGES)
	for package in $chosen; do
		if echo "$watched" | grep -qxF "$package"; then
			took "go test -race $package" trusting raced . "$package"
		else
			took "go test $package" trusting "released test" "" "$package"
		fi
	done
	exit
fi
# What runs in the background ends too if something else fails.
trap 'touch test-output/tools-failed; wait; retold' EXIT
# The tools of the tests are downloaded while the code is compiled, and while the tests run
# that need none.
install_tools() {
	scripts/install-test-tools.sh || { touch test-output/tools-failed; return 1; }
	touch test-output/tools-installed
}
# with_tools COMMAND…: runs the command once the tools of the tests are installed.
with_tools() {
	until [ -e test-output/tools-installed ]; do
		[ ! -e test-output/tools-failed ] || return 1
		sleep 1
	done
	"$@"
}
install_tools >test-output/tools.log 2>&1 &
tools=$!
# link_programs builds those of cmd. Go dates what it builds anew even if it has not changed, by
# which its cache of tests takes it for another program: a program is replaced by another
# alone.
link_programs() {
	released build -buildvcs=false -o "$TEST_PROGRAMS/built/" ./cmd/cutroom ./cmd/worker ./cmd/realtime || return 1
	for program in cutroom worker realtime; do
		cmp -s "$TEST_PROGRAMS/built/$program" "$TEST_PROGRAMS/$program" && continue
		cp "$TEST_PROGRAMS/built/$program" "$TEST_PROGRAMS/built/new" &&
			mv "$TEST_PROGRAMS/built/new" "$TEST_PROGRAMS/$program" || return 1
	done
}
# Go keeps no results of tests that keep screenshots for people to look at.
artifacts=''
case "${CI:-} ${GOFLAGS:-}" in
" "*-count=* | [!\ ]*) artifacts='-artifacts -outputdir test-output' ;;
esac
# All that the stages below share is compiled once, before they run beside each other.
# The linter vets it: go vet would read all of it, and what it is made of, once more.
took "compile" released list -test -export ./... >test-output/packages
# So that tests that only make test-docker and make bench run go on compiling.
took "go vet of tests with tags" released vet -tags docker,nginx ./packaging/... ./functions ./bench
# Programs that many packages test are linked once: see programtest.Build.
export TEST_PROGRAMS="$PWD/.tools/programs"
# What many tests send is drawn once, by each ffmpeg that is installed: see mediatest.
TEST_MEDIA="$PWD/.tools/media/$(ffmpeg -version | cksum | cut -d ' ' -f 1)"
export TEST_MEDIA
mkdir -p "$TEST_MEDIA"
took programs link_programs
# The tests of the server and of its console are the most work.
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
deploy() {
	with_tools trusting "released test" bench -p 2 ./infra/...
}
programs() {
	# shellcheck disable=SC2086 # a list of packages
	with_tools trusting "released test" bench -p 2 $plain
}
race() {
	# shellcheck disable=SC2086 # a list of packages
	with_tools trusting raced . -p 2 $watched
}
pictures() {
	# shellcheck disable=SC2086 # a list of packages
	trusting "released test" . -p 1 $pictures
}
# They look at the whole repository, also as Git and Go list it.
repository() {
	with_tools tested "released test" -count=1 -vet=off ./docs ./scripts ./shared
}
engine() {
	with_tools told scripts/test-engine.sh .tools/engine --ignore tests/models
}
# Five rows of stages run beside each other, at most seven packages: those of the deploy mostly
# wait for a local AWS, and those of programs for the programs, while others compute, which
# keeps two processors busy. With more at once each test would only take longer, beyond what
# bounds some of them on a busy machine.
in_turn server >test-output/server.log 2>&1 &
server=$!
in_turn console functions engine >test-output/console.log 2>&1 &
console=$!
in_turn deploy programs >test-output/programs.log 2>&1 &
programs=$!
in_turn race >test-output/race.log 2>&1 &
race=$!
# It mostly waits for registries.
with_tools told scripts/audit.sh >test-output/audit.log 2>&1 &
audit=$!
took lint told scripts/lint.sh
took "go test of the repository" repository
took "go test of pictures" pictures
took "tools of the tests, the rest" finished tools.log "$tools"
took "vulnerabilities of dependencies" finished audit.log "$audit"
took "container files" .tools/engine/bin/hadolint Dockerfile gpu/Dockerfile
took "go test -race, the rest" finished race.log "$race"
took "go test of the deploy and of programs, the rest" finished programs.log "$programs"
took "go test of the console, of functions and of the engine server, the rest" finished console.log "$console"
took "go test of the server, the rest" finished server.log "$server"
