#!/bin/sh
# newcomer.sh: runs `make run` in a terminal, follows its instructions, and stops it with Ctrl-C. See test-bare.sh.
set -eu
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
log=$folder/log
# The default ports may be in use, because the bare machine shares its ports with the host.
for port in 8080 8081; do
	status=0
	curl -s -o "$folder/other" --max-time 5 "http://127.0.0.1:$port" || status=$?
	if [ "$status" -ne 7 ]; then
		echo "Port $port is in use: using other ports."
		export CUTROOM_ADDR=127.0.0.1:28080 CUTROOM_INFERENCE_ADDR=127.0.0.1:28081
		export CUTROOM_URL=http://$CUTROOM_ADDR CUTROOM_INFERENCE_URL=http://$CUTROOM_INFERENCE_ADDR
	fi
done

touch "$log"
mkfifo "$folder/keys"
# env restores the default signals: a shell makes background processes ignore Ctrl-C.
env --default-signal=INT,QUIT script -qefc "make run" "$log" <"$folder/keys" >"$folder/screen" 2>&1 &
run=$!
exec 3>"$folder/keys"
trap 'printf "\003" >&3 || true; wait "$run" || true; rm -rf "$folder"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# within SECONDS COMMAND…: waits until the command succeeds, and fails if `make run` ends first.
within() {
	left=$1
	shift
	until "$@"; do
		left=$((left - 1))
		if [ "$left" -lt 0 ] || ! kill -0 "$run" 2>/dev/null; then
			cat "$log" >&2
			echo "This did not succeed in time: $*" >&2
			exit 1
		fi
		sleep 1
	done
}

within 3000 grep -q 'Press Ctrl-C to stop' "$log"
tr -d '\r' <"$log" >"$folder/said"
sed "1d; s/ck_[A-Za-z0-9_-]*/ck_…/g" "$folder/said"

# The commands that `make run` printed for the user to paste, in order.
lines=$(sed -n 's/^  \(curl .*\)/\1/p' "$folder/said")
line() { echo "$lines" | sed -n "$1p"; }
[ "$(echo "$lines" | wc -l)" -eq 5 ] || { echo "make run did not print five commands to paste." >&2; exit 1; }
(cd "$folder" && sh -c "$(line 1)")
(cd "$folder" && sh -c "$(line 2)") >"$folder/job"
cat "$folder/job"
echo
job=$(sed -n 's/.*"job_id":"\([^"]*\)".*/\1/p' "$folder/job")
[ -n "$job" ]
completed() {
	sh -c "$(line 3 | sed "s/JOB_ID/$job/")" >"$folder/state"
	grep -q '"status":"completed"' "$folder/state"
}
within 300 completed
cat "$folder/state"
echo
sh -c "$(line 4 | sed "s|JOB_ID|$job|; s|-o |-o $folder/|")"
sh -c "$(line 5)" | grep -q '"content":' || { echo "The gateway did not respond." >&2; exit 1; }
bin/cutroom edit testdata/clip.mp4 -p "film noir" -o "$folder/noir.mp4"
for edit in "$folder/edited.mp4" "$folder/noir.mp4"; do
	ffprobe -v error -select_streams v -count_frames -show_entries stream=codec_name,width,height,nb_read_frames -of csv=p=0 "$edit" |
		tee "$folder/stream"
	grep -q '^h264,[1-9][0-9]*,[1-9][0-9]*,[1-9][0-9]*' "$folder/stream"
	if cmp -s "$edit" testdata/clip.mp4; then
		echo "$edit is the clip itself." >&2
		exit 1
	fi
done
bin/cutroom doctor

printf '\003' >&3
tries=0
while kill -0 "$run" 2>/dev/null; do
	tries=$((tries + 1))
	[ "$tries" -le 60 ] || { echo "Ctrl-C did not stop make run." >&2; exit 1; }
	sleep 1
done
status=0
wait "$run" || status=$?
trap 'rm -rf "$folder"' EXIT
tail -n 3 "$log"
echo "make run ended with status $status after Ctrl-C"
