//go:build unix && !linux

package servertest

import "syscall"

// processGroup puts the server into a separate group, like a terminal, so that Interrupt reaches
// the server but not its parent.
func processGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
