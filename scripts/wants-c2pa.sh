#!/bin/sh
# wants-c2pa.sh: exits with 0 if `cutroom dev`, with the settings in the environment, signs results
# and so needs libc2pa_c (docs/provenance.md), and with 1 otherwise.
case ${CUTROOM_C2PA:-auto} in
off) exit 1 ;;
on) ;;
*) case ${CUTROOM_ENGINE:-preview} in preview) exit 1 ;; esac ;;
esac
[ -z "${CUTROOM_C2PA_LIBRARY:-}" ]
