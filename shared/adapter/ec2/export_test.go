package ec2

import "time"

// LookAgainAfter sets the interval of retries.
func LookAgainAfter(a *TaskAddress, wait time.Duration) { a.again = wait }
