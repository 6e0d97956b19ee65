# shellcheck shell=sh disable=SC2034
# Functions for the scripts that run the deployment on this machine. The scripts source this file in
# the repository's root.
#
# LOCAL_AWS is the folder of their files (.local-aws), LOCAL_AWS_PORT the port of the local AWS
# (4566), STAGE the stage (dev). CONTEXT is the context for CDK, as for a deployment.

GO=${GO:-go}
home=${LOCAL_AWS:-.local-aws}
stage=${STAGE:-dev}
case $home in /*) ;; *) home=$PWD/$home ;; esac
port=${LOCAL_AWS_PORT:-$(cat "$home/port" 2>/dev/null || echo 4566)}
case $stage in *[!a-z0-9-]* | [!a-z]*) echo "STAGE: $stage must be the name of a stage, for example dev." >&2; exit 1 ;; esac
case $port in *[!0-9]* | "") echo "LOCAL_AWS_PORT: $port must be a port number." >&2; exit 1 ;; esac
# of is the folder of the stage.
of=$home/$stage
context=${CONTEXT:-}

# chosen NAME prints the value of a context key, for the worker, which is not part of the local stack.
chosen() {
	value=
	for word in $context; do
		case $word in "$1="*) value=${word#*=} ;; esac
	done
	printf %s "$value"
}

# Programs here run on this machine's processor.
case $(uname -m) in
arm64 | aarch64) architecture=arm64 ;;
*) architecture=x86_64 ;;
esac

# Real credentials and settings of other programs must not reach the programs here. SAM would even
# let them override the template's.
for variable in $(env | sed -n 's/^\(AWS_[A-Za-z0-9_]*\)=.*/\1/p; s/^\(CUTROOM_[A-Za-z0-9_]*\)=.*/\1/p'); do
	unset "$variable"
done
export AWS_REGION=eu-central-1 AWS_DEFAULT_REGION=eu-central-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
export AWS_EC2_METADATA_DISABLED=true CDK_DISABLE_CLI_TELEMETRY=1 SAM_CLI_TELEMETRY=0
account=000000000000

# quiet LOG COMMAND…: runs the command and prints its output only on failure.
quiet() {
	log=$1
	shift
	"$@" >"$log" 2>&1 </dev/null || { tail -n 40 "$log" >&2; return 1; }
}

# runs FILE WORD reports whether our process still runs. FILE holds its process id, and WORD is part
# of its command, because another process may have that id by now.
runs() {
	[ -s "$1" ] || return 1
	number=$(cat "$1")
	# A minimal Linux has no ps, and a Mac no /proc.
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

# ends stops the process in a file and waits until it has ended.
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

# changed FILE: reports whether a source of the deployment is newer.
changed() {
	[ -e "$1" ] || return 0
	files=
	for word in $context; do
		# For example a catalog.
		[ ! -f "${word#*=}" ] || files="$files ${word#*=}"
	done
	# shellcheck disable=SC2086 # names without spaces
	[ -n "$(find functions infra shared cmd go.mod go.sum cdk.json scripts/build-functions.sh $files \
		\( -name testdata -o -name '*_test.go' \) -prune -o -newer "$1" -print | head -n 1)" ]
}

# built FOLDER SYSTEM: the functions, for this machine's processor.
built() {
	changed "$1/made" || return 0
	echo "Building the functions." >&2
	mkdir -p "$1"
	: >"$1/making"
	FUNCTIONS_OS=$2 GO=$GO scripts/build-functions.sh "$architecture" "$1"
	mv "$1/making" "$1/made"
}

# described FOLDER CONTEXT…: writes the stack as a template with its assets, if it is missing or has changed.
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

# template_for_sam makes the template that SAM runs. It calls the local AWS from containers, while
# clients are outside. SAM warns about each path in the metadata that does not belong to a function.
template_for_sam() {
	described "cdk.out/sam/$stage" --no-path-metadata -c worker=none -c watch=off -c streaming=off \
		-c functions="bin/functions/$architecture" \
		-c webhookAllow=host.docker.internal -c endpoint="http://host.docker.internal:$port" \
		-c publicEndpoint="http://127.0.0.1:$port"
}
