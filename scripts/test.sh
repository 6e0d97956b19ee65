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

took gofmt formatted
# Tests keep their screenshots of pages there.
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
slow=$(echo "$watched" | grep -x -e '.*/service/gateway' -e '.*/service/api' -e '.*/service/realtime' -e '.*/engine/engineserver')
watched=$(echo "$slow" && echo "$watched" | grep -vxF "$slow")
# What draws and reads pictures keeps processors busy, and needs none of the tools that are
# installed meanwhile.
pictures=$("$GO" list ./shared/engine/... | grep -vxF "$watched")
# What takes longest begins first.
plain=$("$GO" list ./functions ./cmd/cutroom/... ./cmd/... ./shared/adapter/... ./functions/... ./clients/... ./bench/... \
	./docs/... ./scripts/... ./shared/... | grep -vxF -e "$watched" -e "$pictures" |
	grep -vx -e cutroom/cmd/cutroom -e cutroom/cmd/cutroom/consoletest)
if [ -n "${PACKAGES:-}" ]; then
	took "tools of the tests" scripts/install-test-tools.sh
	# shellcheck disable=SC2086 # a list of packages
	chosen=$("$GO" list $PACKAGES)
	for package in $chosen; do
		if echo "$watched" | grep -qxF "$package"; then
			took "go test -race $package" raced -vet=off -timeout 60m "$package"
		else
			took "go test $package" released test -vet=off -timeout 60m "$package"
		fi
	done
	exit
fi
# The trap also waits for background processes if something else fails.
tools='' audit='' server='' engine='' deploy='' drawn='' programs='' race=''
trap 'touch test-output/tools-failed; wait $tools $audit $server $engine $deploy $drawn $programs $race' EXIT
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
# All that the stages below share is compiled once, before they run beside each other.
# The linter vets it: go vet would read all of it, and what it is made of, once more.
took "compile" released list -test -export ./... >test-output/packages
# So that tests that only make test-docker runs go on compiling.
took "go vet of the images' tests" released vet -tags docker ./packaging/...
# The program that many packages test is linked once, and programs that have not changed
# are those of the last run: see programtest.Folder.
export TEST_PROGRAMS="$PWD/.tools/programs"
# What many tests send is drawn once, by each ffmpeg that is installed: see mediatest.
TEST_MEDIA="$PWD/.tools/media/$(ffmpeg -version | cksum | cut -d ' ' -f 1)"
export TEST_MEDIA
mkdir -p "$TEST_MEDIA"
took "program" released build -o "$TEST_PROGRAMS/" ./cmd/cutroom
# The tests of the server and of its console are the most work, and those of the deploy
# mostly wait for a local AWS: all that starts after them yields to them, so that nobody
# waits in the end for them alone.
with_tools released test -vet=off -p 2 -timeout 60m -artifacts -outputdir test-output ./cmd/cutroom ./cmd/cutroom/consoletest \
	>test-output/server.log 2>&1 &
server=$!
with_tools released test -vet=off -timeout 60m ./infra/... >test-output/deploy.log 2>&1 &
deploy=$!
renice -n 5 -p $$ >test-output/renice.log
# Those of programs mostly wait for the programs, and those of the engine server for its
# clients: they run beside the others, so that two processors are busy to the end.
# shellcheck disable=SC2086 # a list of packages
released test -vet=off -p 2 -timeout 60m $pictures >test-output/pictures.log 2>&1 &
drawn=$!
# shellcheck disable=SC2086 # a list of packages
with_tools released test -vet=off -p 2 -timeout 60m -artifacts -outputdir test-output $plain >test-output/programs.log 2>&1 &
programs=$!
with_tools scripts/test-engine.sh .tools/engine --ignore tests/models >test-output/engine.log 2>&1 &
engine=$!
# shellcheck disable=SC2086 # a list of packages
with_tools raced -vet=off -p 2 -timeout 60m $watched >test-output/race.log 2>&1 &
race=$!
# It mostly waits for registries.
with_tools scripts/audit.sh >test-output/audit.log 2>&1 &
audit=$!
took lint scripts/lint.sh
took "tools of the tests, the rest" finished tools.log "$tools"
tools=''
took "go test -race, the rest" finished race.log "$race"
race=''
took "vulnerabilities of dependencies" finished audit.log "$audit"
audit=''
took "go test of the server, the rest" finished server.log "$server"
server=''
took "go test of pictures, the rest" finished pictures.log "$drawn"
drawn=''
took "go test, the rest" finished programs.log "$programs"
programs=''
took "go test of the deploy, the rest" finished deploy.log "$deploy"
deploy=''
took "engine server, the rest" finished engine.log "$engine"
engine=''
took "container files" .tools/engine/bin/hadolint Dockerfile gpu/Dockerfile
