//go:build unix && !linux

package fence

import (
	"os"
	"syscall"
)

// ownProgram returns the file of this program.
func ownProgram() (string, error) { return os.Executable() }

// attributes puts the child into a process group of its own. These systems cannot
// tie its life to this program's; the limit on processor time bounds a child that
// is left behind.
func attributes(bool, bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func hideProcess() {}

// callFilter returns no filter: there is no seccomp.
func callFilter() []uint64 { return nil }
