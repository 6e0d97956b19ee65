package servertest

import "syscall"

// processGroup puts the server into a separate group, like a terminal, so that Interrupt reaches
// the server but not its parent. The kernel kills it when its parent dies.
func processGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
