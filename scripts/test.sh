#!/bin/sh
# All checks and tests, and how long each took. A tool that is missing is a
# failure, never a skip.
set -eu
cd "$(dirname "$0")/.."
. scripts/stages.sh

command -v curl >/dev/null 2>&1 || scripts/install-package.sh curl apt-get=curl dnf=curl pacman=curl apk=curl brew=curl
command -v python3 >/dev/null 2>&1 || scripts/install-package.sh python3 apt-get=python3 dnf=python3 pacman=python apk=python3 brew=python
# The race detector builds against the C library, whose headers gcc only
# recommends on Debian.
if ! command -v gcc >/dev/null 2>&1 || { [ "$(uname)" = Linux ] && [ ! -e /usr/include/stdlib.h ]; }; then
	scripts/install-package.sh gcc apt-get="gcc libc6-dev" dnf=gcc pacman=gcc apk="gcc musl-dev"
fi
# A test traces what decoders open.
if [ "$(uname)" = Linux ]; then
	command -v strace >/dev/null 2>&1 || scripts/install-package.sh strace apt-get=strace dnf=strace pacman=strace apk=strace
fi
for tool in "$GO" gofmt gcc ffmpeg ffprobe curl python3; do
	command -v "$tool" >/dev/null 2>&1 || { echo "missing tool: $tool" >&2; exit 1; }
done

# Some tests mount a small disk to fill it, which takes root, or to be root in a
# user namespace of one's own. There nothing can be installed for the system.
if [ "$(uname)" = Linux ] && [ "$(id -u)" -ne 0 ]; then
	took "tools of the tests" scripts/install-test-tools.sh
	exec unshare --map-root-user --mount "scripts/$(basename "$0")"
fi

took gofmt formatted
# Pictures that tests take of pages are kept there.
rm -rf test-output
mkdir test-output
# The trap waits for what goes on beside also where something else fails.
tools='' audit='' engine='' deploy='' programs=''
trap 'wait $tools $audit $engine $deploy $programs' EXIT
# The tools of the tests are fetched while the code is compiled.
scripts/install-test-tools.sh >test-output/tools.log 2>&1 &
tools=$!
took "go vet" released vet ./...
took "tools of the tests, the rest" finished tools.log "$tools"
tools=''
# It waits for registries more than it works.
scripts/audit.sh >test-output/audit.log 2>&1 &
audit=$!
# The program that many packages test is linked once: see programtest.Folder.
export TEST_PROGRAMS="$PWD/test-output/programs"
took "program" released build -o "$TEST_PROGRAMS/" ./cmd/cutroom
# The deploy's tests wait for a local AWS more than they work, those of programs for
# the programs, and those of the engine server for its clients: they go on beside the
# others, so that two processors are kept busy to the end. go vet has been.
scripts/test-engine.sh .tools/engine --ignore tests/models >test-output/engine.log 2>&1 &
engine=$!
released test -vet=off -timeout 30m ./infra/... >test-output/deploy.log 2>&1 &
deploy=$!
# The race detector takes several times as long, and compiles all anew. It watches
# what goroutines share within a process: not what draws and reads pictures on one,
# nor what runs in programs of its own (ffmpeg, and the tests of programs, which run as
# they are built for users), nor the adapters of AWS, whose records are shared by
# conditional writes. `make race` watches all.
watched=$("$GO" list ./shared/domain/... ./shared/service/... ./shared/engine/... ./shared/platform/... ./shared/client/... \
	./shared/adapter/sqlite/... ./shared/adapter/diskblob/... ./shared/adapter/prometheus/... |
	grep -v -e /engine/preview -e /engine/ffmpeg -e /domain/media -e /platform/lambda -e /platform/fence)
plain=$("$GO" list ./bench/... ./cmd/... ./docs/... ./functions/... ./scripts/... ./shared/... | grep -vxF "$watched")
# shellcheck disable=SC2086 # a list of packages
released test -vet=off -p 3 -timeout 30m -artifacts -outputdir test-output $plain >test-output/programs.log 2>&1 &
programs=$!
took lint scripts/lint.sh
# shellcheck disable=SC2086 # a list of packages
took "go test -race" raced -vet=off -p 2 -timeout 30m -artifacts -outputdir test-output $watched
took "vulnerabilities of dependencies" finished audit.log "$audit"
audit=''
took "go test, the rest" finished programs.log "$programs"
programs=''
took "go test of the deploy, the rest" finished deploy.log "$deploy"
deploy=''
took "engine server, the rest" finished engine.log "$engine"
engine=''
took "container files" .tools/engine/bin/hadolint Dockerfile gpu/Dockerfile
