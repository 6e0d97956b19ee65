//go:build unix && !linux

package servertest

import "syscall"

// processGroup gives the server a group of its own, as a terminal does, so that
// Interrupt reaches it and not its parent.
func processGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
