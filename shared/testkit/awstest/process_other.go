//go:build unix && !linux

package awstest

import "syscall"

// processGroup puts the process into a separate group, so that Ctrl-C reaches only the test,
// which stops it.
func processGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
