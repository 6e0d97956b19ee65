package fence

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// ownProgram returns the file of this program, even after another replaced it.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// attributes puts the child into a process group of its own, and lets the
// kernel kill it when this program dies, even by SIGKILL.
//
// In namespaces of its own it has no network, sees no IPC of others, and is the
// first process of its namespace, with which all others end. Only root may
// create them directly; other users do so within a user namespace, in which
// they keep their ids.
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

// hideProcess protects the memory and the environment of this process, which
// contain keys, from other processes of the same user.
func hideProcess() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// tryLayers finds out what this process can do, by trying it.
func tryLayers(o order) ability {
	var able ability
	if version, err := landlock.LandlockGetABIVersion(); err == nil {
		able.Landlock = version
	}
	if o.Root {
		able.User = dropRights(true) == nil
	}
	able.Seccomp = filterCalls() == nil
	return able
}

// launch applies the fence and becomes the program. It returns only if that
// fails. It runs on the main thread, to which the settings made here apply.
func launch(o order) error {
	runtime.LockOSThread()
	// The status is the last descriptor that is meant to be open: nothing that
	// the server's own parent left open reaches the program.
	if err := unix.CloseRange(uint(o.Status), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		unix.CloseOnExec(o.Status) // before Linux 5.11
	}
	if o.Reserve {
		if err := reserve(o.Memory); err != nil {
			return err
		}
	}
	if o.Background {
		if err := yield(); err != nil {
			return fmt.Errorf("priority: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if o.Landlock {
		if err := restrictFiles(o); err != nil {
			return fmt.Errorf("restrict files: %w", err)
		}
	}
	if o.Root {
		if err := dropRights(o.User); err != nil {
			return err
		}
		// The kernel resets it when a process changes its user. If the server
		// has died meanwhile, nobody reads the status, and the write to it
		// fails.
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return fmt.Errorf("death signal: %w", err)
		}
	}
	if o.Seccomp {
		if err := filterCalls(); err != nil {
			return fmt.Errorf("seccomp: %w", err)
		}
	}
	return become(o)
}

// backgroundNice is how much nicer programs in the background are than the server: a
// thread of theirs has a third of the share of one of the server's, which seldom waits for
// it.
const backgroundNice = 5

// yield lowers the priority of this thread, and of the program that it becomes.
func yield() error {
	const most = 20 // the system call returns this, less the nice value
	now, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return err
	}
	return unix.Setpriority(unix.PRIO_PROCESS, 0, min(most-now+backgroundNice, most-1))
}

// reserveStep is how much address space is requested at once, in bytes: a
// system refuses a request for more than it has in total.
const reserveStep = 256 << 20

// reserve finds out whether the system would provide the memory, without using
// it.
func reserve(memory int64) error {
	for got := int64(0); got < memory; got += reserveStep {
		_, err := unix.Mmap(-1, 0, reserveStep, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return fmt.Errorf("%d of %d MiB of memory: %w", got>>20, memory>>20, err)
		}
	}
	return nil
}

// The rights of Landlock that are used, and which of them a kernel's version
// supports.
const (
	readFile   = landlock.AccessFSReadFile
	readFolder = landlock.AccessFSReadFile | landlock.AccessFSReadDir
	execute    = landlock.AccessFSExecute
	write      = landlock.AccessFSWriteFile | landlock.AccessFSTruncate | landlock.AccessFSMakeReg |
		landlock.AccessFSRemoveFile | landlock.AccessFSMakeDir | landlock.AccessFSRemoveDir
	// ofFiles are the rights that apply to files, not only to folders.
	ofFiles = landlock.AccessFSExecute | landlock.AccessFSWriteFile | landlock.AccessFSReadFile | landlock.AccessFSTruncate
)

// handled returns everything that a version of Landlock can restrict.
func handled(version int) *landlock.RulesetAttr {
	all := &landlock.RulesetAttr{HandledAccessFS: landlock.AccessFSRefer - 1} // what version 1 knows
	for _, since := range []struct {
		version int
		right   uint64
	}{
		{2, landlock.AccessFSRefer}, {3, landlock.AccessFSTruncate},
		{5, landlock.AccessFSIoctlDev}, {9, landlock.AccessFSResolveUnix},
	} {
		if version >= since.version {
			all.HandledAccessFS |= since.right
		}
	}
	if version >= 4 {
		all.HandledAccessNet = landlock.AccessNetBindTCP | landlock.AccessNetConnectTCP
	}
	if version >= 6 {
		all.Scoped = landlock.ScopeAbstractUnixSocket | landlock.ScopeSignal
	}
	return all
}

// restrictFiles restricts this thread, and the program that it becomes, to the
// named files, and denies TCP, abstract sockets and signals to others, as far
// as the kernel can.
//
// It uses the library's system calls and not its Config, which restricts all
// threads of a process: to find them it reads /proc, which shows another
// process in a namespace, and never ends if the program is built with cgo.
func restrictFiles(o order) error {
	version, err := landlock.LandlockGetABIVersion()
	if err != nil {
		return err
	}
	all := handled(version)
	ruleset, err := landlock.LandlockCreateRuleset(all, 0)
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	allow := func(path string, rights uint64) error {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			return nil // the program reports that itself
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		defer unix.Close(fd)
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
			rights &= ofFiles
		}
		rights &= all.HandledAccessFS
		rule := &landlock.PathBeneathAttr{ParentFd: fd, AllowedAccess: rights}
		if err := landlock.LandlockAddPathBeneathRule(ruleset, rule, 0); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	failures := []error{allow("/dev/null", readFile|landlock.AccessFSWriteFile)}
	for _, path := range o.Executes {
		failures = append(failures, allow(path, readFolder|execute))
	}
	for _, path := range o.Reads {
		failures = append(failures, allow(path, readFolder))
	}
	if o.Folder != "" {
		failures = append(failures, allow(o.Folder, readFolder|write))
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	return landlock.LandlockRestrictSelf(ruleset, 0)
}

// dropRights drops all of root's capabilities but the one to read, as the
// inputs belong to whichever user the server was when it stored them: Landlock
// restricts what is read. Root of a container may lack that one too: then it reads what is
// its own, and no other user can read that in its place.
func dropRights(own bool) error {
	const kept = unix.CAP_DAC_READ_SEARCH
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var held [2]unix.CapUserData
	if err := unix.Capget(&header, &held[0]); err != nil {
		return fmt.Errorf("look at capabilities: %w", err)
	}
	bits := held[0].Permitted & (1 << kept)
	if own && bits == 0 {
		return errors.New("there is no right to read for another user")
	}
	for capability := range uintptr(64) {
		if capability == kept {
			continue
		}
		// A capability that the kernel does not know cannot be held either.
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
	}
	if own {
		if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("keep a capability: %w", err)
		}
		// The calls of package syscall change all threads, but only this one
		// becomes the program; the others end.
		for _, call := range [][4]uintptr{
			{unix.SYS_SETGROUPS},
			{unix.SYS_SETRESGID, ownUser, ownUser, ownUser},
			{unix.SYS_SETRESUID, ownUser, ownUser, ownUser},
		} {
			if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
				return fmt.Errorf("change the user: %w", errno)
			}
		}
	}
	data := [2]unix.CapUserData{{Effective: bits, Permitted: bits, Inheritable: bits}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if own {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, kept, 0, 0); err != nil {
			return fmt.Errorf("keep a capability: %w", err)
		}
	}
	return nil
}

// become sets the limits, reports success, and becomes the program. Once the
// address space is limited nothing may be allocated: Go's runtime takes more of
// it than some programs may have.
func become(o order) error {
	program, err := unix.BytePtrFromString(o.Program)
	if err != nil {
		return err
	}
	arguments, err := syscall.SlicePtrFromStrings(append([]string{o.Program}, o.Args...))
	if err != nil {
		return err
	}
	variables, err := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil {
		return err
	}
	limits := []struct {
		resource int
		limit    unix.Rlimit
	}{
		{unix.RLIMIT_CPU, atMost(unix.RLIMIT_CPU, o.Seconds)},
		{unix.RLIMIT_FSIZE, atMost(unix.RLIMIT_FSIZE, o.MaxFile)},
		{unix.RLIMIT_NOFILE, atMost(unix.RLIMIT_NOFILE, maxOpen)},
		{unix.RLIMIT_CORE, unix.Rlimit{}},
		{unix.RLIMIT_AS, atMost(unix.RLIMIT_AS, o.Memory)},
	}
	started := [1]byte{'+'}
	for i := range limits {
		_, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0,
			uintptr(limits[i].resource), uintptr(unsafe.Pointer(&limits[i].limit)), 0, 0, 0)
		if errno != 0 {
			return errno
		}
	}
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(o.Status), uintptr(unsafe.Pointer(&started)), 1)
	if errno != 0 {
		return errno
	}
	_, _, errno = unix.RawSyscall(unix.SYS_EXECVE,
		uintptr(unsafe.Pointer(program)), uintptr(unsafe.Pointer(&arguments[0])), uintptr(unsafe.Pointer(&variables[0])))
	return errno
}

// atMost returns a limit, or this process's own limit if that is lower.
func atMost(resource int, limit int64) unix.Rlimit {
	now := unix.Rlimit{Max: unix.RLIM_INFINITY}
	_ = unix.Getrlimit(resource, &now)
	lower := min(now.Max, uint64(limit))
	return unix.Rlimit{Cur: lower, Max: lower}
}
