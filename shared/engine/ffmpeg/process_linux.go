package ffmpeg

import "syscall"

// groupOfItsOwn puts the child into a process group of its own, and lets the
// kernel kill it when this program dies, even by SIGKILL. The kernel ties the
// latter to the thread that started the child, so that thread must stay: see
// the lock in [Tools.run].
func groupOfItsOwn() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
