//go:build unix && !linux

package servertest

import "syscall"

// processGroup puts the server into its own process group, as a terminal would, so that Interrupt
// reaches the server but not its parent.
func processGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
