package lambdatest

import "syscall"

// endWithParent makes the kernel kill a function when its parent dies.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
