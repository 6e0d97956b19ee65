# Reads the output of `go test` and prints each failed test after its package. Exits with an error unless a retry
# makes sense: at most three tests failed, each with its own assertion. A retry would prove nothing about a data race,
# a panic, a timeout, or a package that failed outside of its tests.
/^WARNING: DATA RACE|^panic: |^fatal error: |^--- FAIL: .*\(unknown\)|\[(build|setup) failed\]$/ { bad = 1 }
/^--- FAIL: / { tests[++here] = $3 }
/^FAIL\t/ {
	if (!here) bad = 1
	for (i = 1; i <= here; i++) print $2, tests[i]
	all += here
	here = 0
}
END { exit bad || here || all == 0 || all > 3 }
