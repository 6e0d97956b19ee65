package servertest

import "syscall"

// processGroup gives the server a group of its own, as a terminal does, so that
// Interrupt reaches it and not its parent; and a life that ends with its parent's,
// also when that is killed.
func processGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
