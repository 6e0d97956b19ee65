package ec2

import "time"

// LookAgainAfter makes a task look again sooner.
func LookAgainAfter(a *TaskAddress, wait time.Duration) { a.again = wait }
