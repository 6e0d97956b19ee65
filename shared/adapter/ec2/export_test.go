package ec2

import "time"

func LookAgainAfter(a *TaskAddress, wait time.Duration) { a.again = wait }
