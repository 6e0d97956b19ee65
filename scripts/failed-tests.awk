# Reads the output of `go test`, and prints each failed test after its package. It fails unless only
# tests failed, at most three, each on its own assertion: a retry would prove nothing about a data
# race, a panic, a timeout, or a package that failed outside its tests.
/^WARNING: DATA RACE|^panic: |^fatal error: |^--- FAIL: .*\(unknown\)|\[(build|setup) failed\]$/ { bad = 1 }
/^--- FAIL: / { tests[++here] = $3 }
/^FAIL\t/ {
	if (!here) bad = 1
	for (i = 1; i <= here; i++) print $2, tests[i]
	all += here
	here = 0
}
END { exit bad || here || all == 0 || all > 3 }
