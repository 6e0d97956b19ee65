//go:build unix && !linux

package ffmpeg

import "syscall"

// groupOfItsOwn puts the child into a process group of its own. These systems
// cannot tie its life to this program's; the limit on processor time bounds a
// child that is left behind.
func groupOfItsOwn() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
