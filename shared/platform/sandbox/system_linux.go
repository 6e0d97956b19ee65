package sandbox

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownProgram returns the path of this program's file, which works even after the file was replaced.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// attributes makes the kernel kill the child when this program dies, even by SIGKILL.
//
// In separate namespaces, the child has no network and sees no other IPC. It is the first process in its namespace,
// so when it ends, all other processes in the namespace end too. Only root may create these namespaces directly.
// Other users first create a user namespace that keeps their ids.
func attributes(namespaces, root bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if !namespaces {
		return a
	}
	a.Cloneflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWPID
	if !root {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		user, group := os.Geteuid(), os.Getegid()
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: user, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: group, HostID: group, Size: 1}}
	}
	return a
}

// hideProcess protects the keys in this process's memory from other processes of the same user.
func hideProcess() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
