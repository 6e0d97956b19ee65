#!/bin/sh
# check-deploy.sh [FLAG…] [CONTEXT…]: runs `cutroom check` for the deploy of a context,
# which is passed on as it stands in CDK's command line. What is CDK's alone is left out.
set -eu
cd "$(dirname "$0")/.."
count=$#
while [ "$count" -gt 0 ]; do
	word=$1
	shift
	count=$((count - 1))
	case $word in
	-c | --context)
		[ "$count" -gt 0 ] || { echo "check-deploy.sh: nothing follows $word" >&2; exit 2; }
		set -- "$@" "--context=$1"
		shift
		count=$((count - 1))
		;;
	-c*=*) set -- "$@" "--context=${word#-c}" ;;
	--context=*) set -- "$@" "$word" ;;
	# Flags of cutroom check; those with a value are written with "=".
	--before | --json | --local | --only=* | --receiver=* | --upload-size=* | --stream=*) set -- "$@" "$word" ;;
	*) ;;
	esac
done
exec bin/cutroom check "$@"
