//go:build unix && !linux

package fence

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownProgram returns the file of this program.
func ownProgram() (string, error) { return os.Executable() }

// attributes puts the child into a process group of its own. These systems cannot
// tie its life to this program's; the limit on processor time bounds a child that
// is left behind.
func attributes(bool, bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func hideProcess() {}

func tryLayers(order) ability { return ability{} }

// launch sets limits and becomes the program. A limit that the system does not
// support (macOS has none on an address space) is left out rather than fatal.
func launch(o order) error {
	unix.CloseOnExec(o.Status)
	for resource, limit := range map[int]int64{
		unix.RLIMIT_CPU: o.Seconds, unix.RLIMIT_FSIZE: o.MaxFile, unix.RLIMIT_NOFILE: maxOpen,
		unix.RLIMIT_CORE: 0, unix.RLIMIT_AS: o.Memory,
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			continue
		}
		now.Max = min(now.Max, uint64(limit))
		now.Cur = now.Max
		_ = unix.Setrlimit(resource, &now)
	}
	if _, err := unix.Write(o.Status, []byte{'+'}); err != nil {
		return err
	}
	return unix.Exec(o.Program, append([]string{o.Program}, o.Args...), os.Environ())
}
