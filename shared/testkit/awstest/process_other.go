//go:build unix && !linux

package awstest

import "syscall"

// processGroup puts the process into its own group, so that Ctrl-C reaches only the test, which
// then stops the process.
func processGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
