//go:build unix && !linux

package sandbox

import (
	"os"
	"syscall"
)

func ownProgram() (string, error) { return os.Executable() }

// These systems cannot kill a child when this program dies. Its CPU time limit ends it.
func attributes(bool, bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func hideProcess() {}

// This system has no seccomp.
func callFilter() []uint64 { return nil }
