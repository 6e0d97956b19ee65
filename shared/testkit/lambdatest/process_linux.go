package lambdatest

import "syscall"

// endWithParent lets a function's life end with its parent's, also when that is
// killed.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
