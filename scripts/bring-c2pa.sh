#!/bin/sh
# bring-c2pa.sh: installs libc2pa_c into bin for `cutroom dev`, if it is missing. If the environment's settings say
# that results are signed, the server cannot start without the library, so this script waits for it. Otherwise the
# library is installed in the background, and the server verifies Content Credentials as soon as it is installed.
# Machines without Python or a network simply run without it.
set -eu
cd "$(dirname "$0")/.."
if scripts/wants-c2pa.sh; then
	exec scripts/install-c2pa.sh bin
fi
[ -z "${CUTROOM_C2PA_LIBRARY:-}" ] || exit 0
(
	# Use short timeouts, in case the network does not respond.
	why=$(PIP_DEFAULT_TIMEOUT=15 PIP_RETRIES=1 scripts/install-c2pa.sh bin 2>&1) || {
		echo "Content Credentials cannot be verified, because the download of libc2pa_c failed. Everything else works." \
			"scripts/install-c2pa.sh tries again. $(printf '%s\n' "$why" | tail -n 1)" >&2
	}
) </dev/null &
