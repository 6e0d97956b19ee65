//go:build unix && !linux

package sandbox

import (
	"os"
	"syscall"
)

func ownProgram() (string, error) { return os.Executable() }

// These systems cannot kill a child when this program dies. The CPU time limit eventually ends the child.
func attributes(bool, bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func hideProcess() {}

// These systems have no seccomp.
func callFilter() []uint64 { return nil }
