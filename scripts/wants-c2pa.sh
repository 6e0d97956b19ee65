#!/bin/sh
# wants-c2pa.sh: its exit status is 0 if `cutroom dev`, with the settings in the environment, signs
# results and needs libc2pa_c for that (docs/provenance.md), and 1 otherwise.
case ${CUTROOM_C2PA:-auto} in
off) exit 1 ;;
on) ;;
*) case ${CUTROOM_ENGINE:-preview} in preview) exit 1 ;; esac ;;
esac
[ -z "${CUTROOM_C2PA_LIBRARY:-}" ]
