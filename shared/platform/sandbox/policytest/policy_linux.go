package policytest

import (
	"fmt"
	"slices"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"cutroom/shared/platform/sandbox/launcher"
)

// allowed lists the system calls needed by a program that reads files, computes with threads, and writes files.
// All others fail with EPERM: sockets, tracing, mounting, keys, BPF, namespaces, anything about other users and
// processes, and future system calls. Calls that change a file by name fail too, because Landlock does not
// restrict all of them: it does not restrict truncate before Linux 6.2, and never restricts changing file times.
var allowed = []string{
	// files
	"access", "faccessat", "faccessat2", "open", "openat", "openat2", "creat", "close", "close_range", "dup",
	"dup2", "dup3", "read", "pread64", "readv", "preadv", "preadv2", "write", "pwrite64", "writev",
	"pwritev", "pwritev2", "lseek", "stat", "fstat", "lstat", "newfstatat", "statx", "statfs", "fstatfs",
	"getdents", "getdents64", "readlink", "readlinkat", "getcwd", "chdir", "fchdir", "mkdir", "mkdirat",
	"unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2", "ftruncate", "fallocate",
	"fadvise64", "readahead", "fsync", "fdatasync", "sync_file_range", "sendfile", "copy_file_range", "splice",
	"umask", "pipe", "pipe2", "poll", "ppoll", "select", "pselect6", "epoll_create",
	"epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "eventfd", "eventfd2",
	// memory
	"brk", "mmap", "munmap", "mremap", "mprotect", "madvise", "mincore", "mlock", "munlock", "msync",
	"membarrier", "pkey_alloc", "pkey_free", "pkey_mprotect", "get_mempolicy", "set_mempolicy", "mbind",
	// threads and time
	"futex", "futex_waitv", "futex_wake", "futex_wait", "futex_requeue", "set_robust_list", "get_robust_list",
	"set_tid_address", "rseq", "arch_prctl", "sched_yield", "sched_getaffinity", "sched_getparam",
	"sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min", "getpriority", "clock_gettime", "clock_getres", "clock_nanosleep",
	"gettimeofday", "time", "times", "nanosleep", "timer_create", "timer_settime", "timer_gettime",
	"timer_delete", "setitimer", "getitimer", "alarm", "pause", "restart_syscall", "exit", "exit_group",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend", "rt_sigtimedwait",
	"sigaltstack",
	// the program's own process
	"execve", "getpid", "getppid", "gettid", "getpgrp", "getpgid", "getuid", "geteuid", "getgid", "getegid",
	"getresuid", "getresgid", "getgroups", "getrlimit", "setrlimit", "getrusage", "sysinfo",
	"uname", "getrandom", "getcpu", "capget", "riscv_hwprobe", "riscv_flush_icache",
}

// unknown lists calls that fail with ENOSYS, because libraries try them first and have a fallback.
// The flags of clone3 are in memory, which a filter cannot read.
var unknown = []string{
	"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_create", "mseal",
	"map_shadow_stack", "cachestat",
}

// The ioctl requests that libraries make on any file. They ask whether the file is a terminal, how wide the terminal
// is, and how much can be read, or they set blocking (FIONBIO) and close on exec (FIOCLEX). The numbers are from
// asm-generic/ioctls.h, which all architectures with a filter share.
var requests = []uint64{unix.TCGETS, unix.TIOCGWINSZ, unix.TIOCINQ, 0x5421, 0x5451}

var options = []uint64{unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_VMA, unix.PR_GET_DUMPABLE, unix.PR_CAPBSET_READ}

// commands lists the allowed fcntl commands. Others can send any signal to any process of the same
// user (F_SETOWN, F_SETSIG).
var commands = []uint64{
	unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_GETPIPE_SZ,
	unix.F_SETPIPE_SZ, unix.F_GET_SEALS,
}

// ofProcess lists calls whose first argument is the process to change. 0 means the calling process.
var ofProcess = []string{"prlimit64", "sched_setaffinity", "sched_setparam", "sched_setscheduler"}

// Filter returns the seccomp filter for an architecture, given as a GOARCH value. The filter allows only the calls
// above. It allows clone only for threads, and it allows signals, limits and priorities only for the program itself.
// It contains launcher.OwnProcess instead of the process id.
//
// Filter fails if the seccomp library does not know the architecture.
func Filter(architecture string) ([]bpf.RawInstruction, error) {
	known, err := arch.GetInfo(architecture)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	policy := policyOf(known)
	assembled, err := assemble(policy, known)
	if err != nil {
		return nil, fmt.Errorf("sandbox: assemble the filter: %w", err)
	}
	filter, err := bpf.Assemble(assembled)
	if err != nil {
		return nil, fmt.Errorf("sandbox: assemble the filter: %w", err)
	}
	return filter, nil
}

// assemble assembles a policy for any architecture. The seccomp library supports only this
// machine's architecture, so assemble temporarily replaces the library's description of it.
func assemble(policy seccomp.Policy, wanted *arch.Info) ([]bpf.Instruction, error) {
	own, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	// The library compares the architecture with X86_64 to reject x32 calls, so keep that pointer distinct.
	keptOwn, keptX86, x86 := *own, arch.X86_64, *arch.X86_64
	defer func() { *own, arch.X86_64 = keptOwn, keptX86 }()
	*own, arch.X86_64 = *wanted, &x86
	return policy.Assemble()
}

func policyOf(known *arch.Info) seccomp.Policy {
	there := func(names []string) []string {
		var found []string
		for _, name := range names {
			if _, ok := known.SyscallNames[name]; ok {
				found = append(found, name)
			}
		}
		return found
	}
	only := func(name string, argument uint32, operation seccomp.Operation, values ...uint64) []seccomp.NameWithConditions {
		var rules []seccomp.NameWithConditions
		for _, value := range values {
			rules = append(rules, seccomp.NameWithConditions{
				Name: name, Conditions: seccomp.ArgumentConditions{{Argument: argument, Operation: operation, Value: value}},
			})
		}
		return rules
	}
	conditional := slices.Concat(
		only("clone", 0, seccomp.BitsSet, unix.CLONE_THREAD), only("tgkill", 0, seccomp.Equal, launcher.OwnProcess),
		only("prctl", 0, seccomp.Equal, options...), only("ioctl", 1, seccomp.Equal, requests...),
		only("fcntl", 1, seccomp.Equal, commands...),
		[]seccomp.NameWithConditions{{Name: "setpriority", Conditions: seccomp.ArgumentConditions{
			{Argument: 0, Operation: seccomp.Equal, Value: unix.PRIO_PROCESS}, {Argument: 1, Operation: seccomp.Equal},
		}}},
	)
	for _, name := range ofProcess {
		conditional = append(conditional, only(name, 0, seccomp.Equal, 0)...)
	}
	return seccomp.Policy{
		DefaultAction: seccomp.ActionErrno,
		Syscalls: []seccomp.SyscallGroup{
			{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: there(unknown)},
			{Action: seccomp.ActionAllow, Names: there(allowed), NamesWithCondtions: conditional},
		},
	}
}
