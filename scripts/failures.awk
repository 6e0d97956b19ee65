# Reads the output of `go test` and prints only the failures: each failed test with the first lines of its message,
# data races, panics, and compiler errors.
/^ *--- FAIL: |^WARNING: DATA RACE|^panic: |^fatal error: |^# / { print substr($0, 1, 300); left = 5; next }
/^FAIL\t/ { print; left = 0; next }
/^(ok  |---|===|FAIL$|PASS$|\?)/ { left = 0 }
left && NF { print substr($0, 1, 300); left-- }
