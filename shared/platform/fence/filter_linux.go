package fence

import (
	"fmt"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"cutroom/shared/platform/fence/launcher"
)

// allowed are the system calls of a program that reads files, computes with
// threads, and writes files. All others fail with EPERM: sockets, tracing,
// mounting, keys, BPF, namespaces, anything about other users and processes,
// and whatever is added to Linux later.
var allowed = []string{
	// files
	"access", "faccessat", "faccessat2", "open", "openat", "openat2", "creat", "close", "close_range", "dup",
	"dup2", "dup3", "fcntl", "read", "pread64", "readv", "preadv", "preadv2", "write", "pwrite64", "writev",
	"pwritev", "pwritev2", "lseek", "stat", "fstat", "lstat", "newfstatat", "statx", "statfs", "fstatfs",
	"getdents", "getdents64", "readlink", "readlinkat", "getcwd", "chdir", "fchdir", "mkdir", "mkdirat",
	"unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2", "truncate", "ftruncate", "fallocate",
	"fadvise64", "readahead", "fsync", "fdatasync", "sync_file_range", "sendfile", "copy_file_range", "splice",
	"umask", "utimensat", "pipe", "pipe2", "poll", "ppoll", "select", "pselect6", "epoll_create",
	"epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "eventfd", "eventfd2",
	// memory
	"brk", "mmap", "munmap", "mremap", "mprotect", "madvise", "mincore", "mlock", "munlock", "msync",
	"membarrier", "pkey_alloc", "pkey_free", "pkey_mprotect", "get_mempolicy", "set_mempolicy", "mbind",
	// threads and time
	"futex", "futex_waitv", "futex_wake", "futex_wait", "futex_requeue", "set_robust_list", "get_robust_list",
	"set_tid_address", "rseq", "arch_prctl", "sched_yield", "sched_getaffinity", "sched_setaffinity",
	"sched_getparam", "sched_getscheduler", "sched_setscheduler", "sched_get_priority_max",
	"sched_get_priority_min", "getpriority", "setpriority", "clock_gettime", "clock_getres", "clock_nanosleep",
	"gettimeofday", "time", "times", "nanosleep", "timer_create", "timer_settime", "timer_gettime",
	"timer_delete", "setitimer", "getitimer", "alarm", "pause", "restart_syscall", "exit", "exit_group",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend", "rt_sigtimedwait",
	"sigaltstack",
	// itself
	"execve", "getpid", "getppid", "gettid", "getpgrp", "getpgid", "getuid", "geteuid", "getgid", "getegid",
	"getresuid", "getresgid", "getgroups", "getrlimit", "setrlimit", "prlimit64", "getrusage", "sysinfo",
	"uname", "getrandom", "getcpu", "capget", "riscv_hwprobe", "riscv_flush_icache",
}

// unknown are calls that libraries try first, with a fallback if the kernel
// does not know them. The flags of clone3 are in memory, which a filter cannot
// read.
var unknown = []string{
	"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_create", "mseal",
	"map_shadow_stack", "cachestat",
}

// The ioctl requests that libraries make on any file: whether it is a terminal,
// and how wide, how much can be read, whether reading blocks (FIONBIO), and
// whether it is closed on exec (FIOCLEX).
var requests = []uint64{unix.TCGETS, unix.TIOCGWINSZ, unix.TIOCINQ, 0x5421, 0x5451}

// The options of prctl: names of threads and of memory.
var options = []uint64{unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_VMA, unix.PR_GET_DUMPABLE, unix.PR_CAPBSET_READ}

// callFilter returns the filter that restricts a program to the calls that are allowed: clone
// only for threads, and signals only to itself. It is made once, by the server: the
// library's tables take longer to prepare than all that a launcher does.
//
// There is none for an architecture whose calls are not known. Errors: those of a filter
// that cannot be made.
func callFilter() ([]uint64, error) {
	known, err := arch.GetInfo("")
	if err != nil {
		return nil, nil
	}
	policy := policyOf(known)
	assembled, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("fence: assemble the filter: %w", err)
	}
	raw, err := bpf.Assemble(assembled)
	if err != nil {
		return nil, fmt.Errorf("fence: assemble the filter: %w", err)
	}
	filter := make([]uint64, len(raw))
	for i, one := range raw {
		filter[i] = uint64(one.Op)<<48 | uint64(one.Jt)<<40 | uint64(one.Jf)<<32 | uint64(one.K)
	}
	return filter, nil
}

// policyOf returns what is allowed on an architecture.
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
	only := func(name string, operation seccomp.Operation, values ...uint64) []seccomp.NameWithConditions {
		var rules []seccomp.NameWithConditions
		for _, value := range values {
			rules = append(rules, seccomp.NameWithConditions{
				Name: name, Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: operation, Value: value}},
			})
		}
		return rules
	}
	conditional := append(
		only("clone", seccomp.BitsSet, unix.CLONE_THREAD), only("tgkill", seccomp.Equal, launcher.OwnProcess)...)
	conditional = append(conditional, only("prctl", seccomp.Equal, options...)...)
	for _, request := range requests {
		conditional = append(conditional, seccomp.NameWithConditions{
			Name: "ioctl", Conditions: seccomp.ArgumentConditions{{Argument: 1, Operation: seccomp.Equal, Value: request}},
		})
	}
	return seccomp.Policy{
		DefaultAction: seccomp.ActionErrno,
		Syscalls: []seccomp.SyscallGroup{
			{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: there(unknown)},
			{Action: seccomp.ActionAllow, Names: there(allowed), NamesWithCondtions: conditional},
		},
	}
}
