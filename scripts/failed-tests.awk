# Reads what `go test` printed for packages, and prints each test that failed after its
# package. It fails unless tests alone failed, three at most, each by what it saw: a data
# race, a panic, a time-out, or a package that failed outside of its tests is no matter of
# chance that a second try could settle.
/^WARNING: DATA RACE|^panic: |^fatal error: |^--- FAIL: .*\(unknown\)|\[(build|setup) failed\]$/ { bad = 1 }
/^--- FAIL: / { tests[++here] = $3 }
/^FAIL\t/ {
	if (!here) bad = 1
	for (i = 1; i <= here; i++) print $2, tests[i]
	all += here
	here = 0
}
END { exit bad || here || all == 0 || all > 3 }
