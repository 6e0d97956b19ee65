package launcher

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

func tryLayers(o Order) Ability {
	var able Ability
	if version, err := landlockVersion(); err == nil {
		able.Landlock = version
	}
	if o.Root {
		able.User = dropRights(true) == nil
	}
	able.Seccomp = filterCalls(o.Filter) == nil
	return able
}

// launch applies the sandbox and executes the program in this process. It returns only if that
// fails. It locks the main thread, because the restrictions apply to a single thread.
func launch(o Order) error {
	runtime.LockOSThread()
	sacrifice()
	// Do this early, so that the launcher takes no CPU time away from the server.
	if o.Background {
		if err := yield(); err != nil {
			return failed("priority", err)
		}
	}
	// The status pipe is the highest descriptor in use, so close everything from there on when the
	// program is executed.
	const last = 1<<32 - 1
	if _, _, errno := syscall.RawSyscall(sysCloseRange, uintptr(o.Status), last, closeRangeCloexec); errno != 0 {
		syscall.CloseOnExec(int(o.Status)) // before Linux 5.11
	}
	if o.Reserve {
		if err := reserve(o.Memory); err != nil {
			return err
		}
	}
	if err := control(prSetNoNewPrivs, 1, 0, 0); err != nil {
		return failed("no_new_privs", err)
	}
	if o.Landlock {
		if err := restrictFiles(o); err != nil {
			return failed("restrict files", err)
		}
	}
	if o.Root {
		if err := dropRights(o.User); err != nil {
			return err
		}
		// A change of user resets the death signal, so set it again. If the server has died in the meantime, writing
		// the status fails.
		if err := control(syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0); err != nil {
			return failed("death signal", err)
		}
	}
	if len(o.Filter) > 0 {
		if err := filterCalls(o.Filter); err != nil {
			return failed("seccomp", err)
		}
	}
	return become(o)
}

// sacrifice makes the kernel kill this process before the server when memory runs out. It has no
// effect without /proc.
func sacrifice() {
	if fd, err := syscall.Open("/proc/self/oom_score_adj", syscall.O_WRONLY|syscall.O_CLOEXEC, 0); err == nil {
		_, _ = syscall.Write(fd, []byte("1000"))
		_ = syscall.Close(fd)
	}
}

// backgroundNice gives each thread of a background program a third of a server thread's CPU share.
// Server threads rarely wait for these programs.
const backgroundNice = 5

// yield lowers the priority of this thread and of the program that replaces it.
func yield() error {
	const most = 20 // the system call returns this minus the nice value
	now, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		return err
	}
	return syscall.Setpriority(syscall.PRIO_PROCESS, 0, min(most-now+backgroundNice, most-1))
}

// reserve requests memory in steps of reserveStep bytes. The system rejects a single request for more memory than it
// has in total.
const reserveStep = 256 << 20

// reserve checks whether the system could provide the memory, without using it.
func reserve(memory int64) error {
	for got := int64(0); got < memory; got += reserveStep {
		_, err := syscall.Mmap(
			-1, 0, reserveStep, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		if err != nil {
			return failed(strconv.FormatInt(got>>20, 10)+" of "+strconv.FormatInt(memory>>20, 10)+" MiB of memory", err)
		}
	}
	return nil
}

// filterCalls restricts this thread, and the program that replaces it, to the system calls that the
// filter allows. It also disables set-user-ID execution.
func filterCalls(filter []uint64) error {
	if len(filter) == 0 {
		return errors.New("no filter")
	}
	instructions := make([]syscall.SockFilter, len(filter))
	for i, word := range filter {
		k := uint32(word)
		if k == OwnProcess {
			k = uint32(os.Getpid())
		}
		instructions[i] = syscall.SockFilter{Code: uint16(word >> 48), Jt: uint8(word >> 40), Jf: uint8(word >> 32), K: k}
	}
	program := &syscall.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]}
	if err := control(prSetNoNewPrivs, 1, 0, 0); err != nil {
		return err
	}
	_, _, errno := syscall.RawSyscall(
		syscall.SYS_PRCTL, syscall.PR_SET_SECCOMP, seccompModeFilter, uintptr(unsafe.Pointer(program)))
	return fails(errno)
}

// dropRights drops all of root's capabilities except for reading files, because the server may have stored the inputs
// as another user. Landlock limits the program's reads. If own is set, the program runs as its own user, and
// dropRights fails if root lacks that capability, as in some containers.
func dropRights(own bool) error {
	const kept = capDACReadSearch
	header := capabilityHeader{version: capabilityVersion3}
	var held [2]capabilities
	if err := capability(syscall.SYS_CAPGET, &header, &held); err != nil {
		return failed("read capabilities", err)
	}
	bits := held[0].permitted & (1 << kept)
	if own && bits == 0 {
		return errors.New("no permission to read another user's files")
	}
	for number := range uintptr(64) {
		if number == kept {
			continue
		}
		// The kernel rejects capabilities that it does not know. No process can have them anyway.
		_ = control(syscall.PR_CAPBSET_DROP, number, 0, 0)
	}
	if own {
		if err := control(syscall.PR_SET_KEEPCAPS, 1, 0, 0); err != nil {
			return failed("keep a capability", err)
		}
		// Package syscall's Setgroups and similar functions change all threads. Here only this
		// thread matters: it executes the program, and the others end.
		for _, call := range [][4]uintptr{
			{syscall.SYS_SETGROUPS},
			{syscall.SYS_SETRESGID, OwnUser, OwnUser, OwnUser},
			{syscall.SYS_SETRESUID, OwnUser, OwnUser, OwnUser},
		} {
			if _, _, errno := syscall.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
				return failed("change the user", errno)
			}
		}
	}
	data := [2]capabilities{{effective: bits, permitted: bits, inheritable: bits}}
	if err := capability(syscall.SYS_CAPSET, &header, &data); err != nil {
		return failed("drop capabilities", err)
	}
	if own {
		if err := control(prCapAmbient, prCapAmbientRaise, kept, 0); err != nil {
			return failed("keep a capability", err)
		}
	}
	return nil
}

// become sets the limits, reports success, and executes the program. Once it has limited the address space, it must
// not allocate, because Go's runtime uses more address space than some programs are allowed.
func become(o Order) error {
	program, err := syscall.BytePtrFromString(o.Program)
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
		limit    syscall.Rlimit
	}{
		{syscall.RLIMIT_CPU, atMost(syscall.RLIMIT_CPU, o.Seconds)},
		{syscall.RLIMIT_FSIZE, atMost(syscall.RLIMIT_FSIZE, o.MaxFile)},
		{syscall.RLIMIT_NOFILE, atMost(syscall.RLIMIT_NOFILE, MaxOpen)},
		{syscall.RLIMIT_CORE, syscall.Rlimit{}},
		{syscall.RLIMIT_AS, atMost(syscall.RLIMIT_AS, o.Memory)},
	}
	started := [1]byte{'+'}
	for i := range limits {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0,
			uintptr(limits[i].resource), uintptr(unsafe.Pointer(&limits[i].limit)), 0, 0, 0)
		if errno != 0 {
			return errno
		}
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(o.Status), uintptr(unsafe.Pointer(&started)), 1)
	if errno != 0 {
		return errno
	}
	_, _, errno = syscall.RawSyscall(syscall.SYS_EXECVE,
		uintptr(unsafe.Pointer(program)), uintptr(unsafe.Pointer(&arguments[0])), uintptr(unsafe.Pointer(&variables[0])))
	return errno
}

func atMost(resource int, limit int64) syscall.Rlimit {
	now := syscall.Rlimit{Max: ^uint64(0)}
	_ = syscall.Getrlimit(resource, &now)
	lower := min(now.Max, uint64(limit))
	return syscall.Rlimit{Cur: lower, Max: lower}
}
