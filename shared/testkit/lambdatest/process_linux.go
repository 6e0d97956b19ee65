package lambdatest

import "syscall"

// endWithParent has the kernel kill a function when its parent dies.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
