#!/bin/sh
# fuzz.sh: runs every fuzz target for a short time with new inputs. (The tests already run the stored inputs.)
# -fuzztime is a number of runs rather than seconds, because a run that is limited in seconds sometimes fails if it
# ends while an input is being minimized (go.dev/issue/75804).
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}

for package in $(grep -rl '^func Fuzz' --include='*_test.go' cmd shared | xargs -n 1 dirname | sort -u); do
	# shellcheck disable=SC2013 # names without spaces
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' "$package"/*_test.go); do
		"$GO" test -run '^$' -fuzz "^$target\$" -fuzztime "${RUNS:-50000}x" -fuzzminimizetime 100x "./$package"
	done
done
