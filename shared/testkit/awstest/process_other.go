//go:build unix && !linux

package awstest

import "syscall"

// processGroup gives the process a group of its own, so that a Ctrl-C reaches the
// test, which ends it.
func processGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
