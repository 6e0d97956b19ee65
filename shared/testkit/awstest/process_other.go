//go:build unix && !linux

package awstest

import "syscall"

// processGroup puts the process into a separate group, so that a Ctrl-C reaches only the test, which
// ends it.
func processGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
