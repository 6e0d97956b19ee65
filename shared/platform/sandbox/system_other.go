//go:build unix && !linux

package sandbox

import (
	"os"
	"syscall"
)

func ownProgram() (string, error) { return os.Executable() }

// attributes puts the child into a separate process group. These systems cannot kill it when this
// program dies; the limit on CPU time ends a child that is left behind.
func attributes(bool, bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func hideProcess() {}

// callFilter returns nil because this system has no seccomp.
func callFilter() []uint64 { return nil }
