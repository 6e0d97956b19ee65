package awstest

import "syscall"

// processGroup puts the process into a separate group, so that a Ctrl-C reaches only the test, which
// ends it. The kernel kills it when the test dies.
func processGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
