package awstest

import "syscall"

// processGroup puts the process into a separate group, so that Ctrl-C reaches only the test,
// which stops it. The kernel kills it when the test dies.
func processGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
