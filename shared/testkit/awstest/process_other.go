//go:build unix && !linux

package awstest

import "syscall"

// processGroup puts the process into a group of its own, so that a Ctrl-C reaches
// only the test, which ends it.
func processGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
