#!/bin/sh
# bring-c2pa.sh: installs libc2pa_c into bin for `cutroom dev`, with the settings in the environment. A server that
# signs results needs it to start, so this waits for it. For any other server it is installed in the background: the
# server verifies Content Credentials once it exists. A machine that lacks Python or a network runs without it.
set -eu
cd "$(dirname "$0")/.."
if scripts/wants-c2pa.sh; then
	exec scripts/install-c2pa.sh bin
fi
[ -z "${CUTROOM_C2PA_LIBRARY:-}" ] || exit 0
(
	# Do not wait long for an unresponsive network.
	why=$(PIP_DEFAULT_TIMEOUT=15 PIP_RETRIES=1 scripts/install-c2pa.sh bin 2>&1) || {
		echo "Content Credentials cannot be verified, because the download of libc2pa_c failed. Everything else works." \
			"scripts/install-c2pa.sh tries again. $(printf '%s\n' "$why" | tail -n 1)" >&2
	}
) </dev/null &
