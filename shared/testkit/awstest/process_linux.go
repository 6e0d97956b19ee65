package awstest

import "syscall"

// processGroup puts the process into its own group, so that Ctrl-C reaches only the test, which
// then stops the process. The kernel kills the process when the test dies.
func processGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
