# Reads what `go test` printed, and prints what of it tells of a failure: each test that
# failed with the first lines of its message, data races, panics, and what did not compile.
/^ *--- FAIL: |^WARNING: DATA RACE|^panic: |^fatal error: |^# / { print substr($0, 1, 300); left = 5; next }
/^FAIL\t/ { print; left = 0; next }
/^(ok  |---|===|FAIL$|PASS$|\?)/ { left = 0 }
left && NF { print substr($0, 1, 300); left-- }
