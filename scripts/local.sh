# shellcheck shell=sh disable=SC2034
# Functions for the scripts that run a deployment on this machine. They source this file in the repository's root.
#
# LOCAL_AWS is the folder for the scripts' files (.local-aws), LOCAL_AWS_PORT the port of the local AWS (4566), and
# STAGE the stage (dev). CONTEXT is the context for CDK, as in a real deployment.

GO=${GO:-go}
home=${LOCAL_AWS:-.local-aws}
stage=${STAGE:-dev}
case $home in /*) ;; *) home=$PWD/$home ;; esac
port=${LOCAL_AWS_PORT:-$(cat "$home/port" 2>/dev/null || echo 4566)}
case $stage in *[!a-z0-9-]* | [!a-z]*) echo "STAGE: $stage must be the name of a stage, for example dev." >&2; exit 1 ;; esac
case $port in *[!0-9]* | "") echo "LOCAL_AWS_PORT: $port must be a port number." >&2; exit 1 ;; esac
# of is the stage's folder.
of=$home/$stage
context=${CONTEXT:-}

# chosen NAME prints the value of a context key. The worker needs it, because the local stack does not include the
# worker.
chosen() {
	value=
	for word in $context; do
		case $word in "$1="*) value=${word#*=} ;; esac
	done
	printf %s "$value"
}

# Build for this machine's processor, because the functions and the worker run here.
case $(uname -m) in
arm64 | aarch64) architecture=arm64 ;;
*) architecture=x86_64 ;;
esac

# Unset the user's AWS_ and CUTROOM_ variables, so that real credentials and other settings do not reach the programs
# here. SAM would even let them override the template.
for variable in $(env | sed -n 's/^\(AWS_[A-Za-z0-9_]*\)=.*/\1/p; s/^\(CUTROOM_[A-Za-z0-9_]*\)=.*/\1/p'); do
	unset "$variable"
done
export AWS_REGION=eu-central-1 AWS_DEFAULT_REGION=eu-central-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
export AWS_EC2_METADATA_DISABLED=true CDK_DISABLE_CLI_TELEMETRY=1 SAM_CLI_TELEMETRY=0
account=000000000000

# quiet LOG COMMAND…: runs the command, and prints its output only if it fails.
quiet() {
	log=$1
	shift
	"$@" >"$log" 2>&1 </dev/null || { tail -n 40 "$log" >&2; return 1; }
}

# runs FILE WORD reports whether the process whose id is in FILE is running. Another process may have that id by now,
# so its command must contain WORD.
runs() {
	[ -s "$1" ] || return 1
	number=$(cat "$1")
	# A minimal Linux has no ps, and a Mac has no /proc.
	if [ -e /proc/self/cmdline ]; then
		command=$(tr '\0' ' ' 2>/dev/null <"/proc/$number/cmdline" || true)
	else
		command=$(ps -o args= -p "$number" 2>/dev/null || true)
	fi
	case $command in
	*"$2"*) ;;
	*) return 1 ;;
	esac
}

# ends FILE WORD stops the process whose id is in FILE, and waits until it has ended.
ends() {
	runs "$1" "$2" || { rm -f "$1"; return 0; }
	process=$(cat "$1")
	kill "$process" 2>/dev/null || true
	tries=0
	while kill -0 "$process" 2>/dev/null; do
		tries=$((tries + 1))
		[ "$tries" -ne 150 ] || kill -KILL "$process" 2>/dev/null || true
		sleep 0.1
	done
	rm -f "$1"
}

# changed FILE: reports whether a source of the deployment is newer than FILE.
changed() {
	[ -e "$1" ] || return 0
	files=
	for word in $context; do
		# Values that name files, such as a catalog, are sources too.
		[ ! -f "${word#*=}" ] || files="$files ${word#*=}"
	done
	# shellcheck disable=SC2086 # names without spaces
	[ -n "$(find functions infra shared cmd go.mod go.sum cdk.json scripts/build-functions.sh $files \
		\( -name testdata -o -name '*_test.go' \) -prune -o -newer "$1" -print | head -n 1)" ]
}

# built FOLDER SYSTEM: builds the functions for this machine's processor.
built() {
	changed "$1/made" || return 0
	echo "Building the functions." >&2
	mkdir -p "$1"
	: >"$1/making"
	FUNCTIONS_OS=$2 GO=$GO scripts/build-functions.sh "$architecture" "$1"
	mv "$1/making" "$1/made"
}

# described FOLDER CONTEXT…: writes the stack's template and assets, if they are missing or a source has changed.
described() {
	into=$1
	shift
	if [ "$(cat "$into/made-of" 2>/dev/null)" = "$* $context" ] && ! changed "$into/made-of"; then
		return
	fi
	echo "Describing the stack." >&2
	mkdir -p "$into"
	rm -f "$into/made-of"
	printf '%s' "$* $context" >"$into/making"
	# shellcheck disable=SC2086 # several words
	quiet "$into/log" .tools/cdk/node_modules/.bin/cdk synth --quiet --output "$into/stack" \
		-c stage="$stage" -c arch="$architecture" "$@" $context
	mv "$into/making" "$into/made-of"
}

template=Cutroom-$stage.template.json

# template_for_sam writes the template that SAM runs. Its functions run in containers and so need another address of
# the local AWS than clients do. Path metadata is off, because SAM warns about each path that does not belong to a
# function.
template_for_sam() {
	described "cdk.out/sam/$stage" --no-path-metadata -c worker=none -c watch=off -c streaming=off \
		-c functions="bin/functions/$architecture" \
		-c webhookAllow=host.docker.internal -c endpoint="http://host.docker.internal:$port" \
		-c publicEndpoint="http://127.0.0.1:$port"
	python3 scripts/sam-templates.py "cdk.out/sam/$stage/stack/$template"
}
