//go:build unix && !linux

package sandbox

import (
	"os"
	"syscall"
)

func ownProgram() (string, error) { return os.Executable() }

// These systems cannot kill the child when this program dies. The limit on CPU time ends a child
// that is left behind.
func attributes(bool, bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func hideProcess() {}

// This system has no seccomp.
func callFilter() []uint64 { return nil }
