#!/bin/sh
# wants-c2pa.sh: exits with 0 if `cutroom dev` would sign results with the environment's settings, and so needs
# libc2pa_c (docs/provenance.md). Otherwise it exits with 1.
case ${CUTROOM_C2PA:-auto} in
off) exit 1 ;;
on) ;;
*) case ${CUTROOM_ENGINE:-preview} in preview) exit 1 ;; esac ;;
esac
[ -z "${CUTROOM_C2PA_LIBRARY:-}" ]
