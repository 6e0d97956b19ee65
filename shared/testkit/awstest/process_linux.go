package awstest

import "syscall"

// processGroup gives the process a group of its own, so that a Ctrl-C reaches the
// test, which ends it; and a life that ends with the test's, also when that is
// killed.
func processGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
