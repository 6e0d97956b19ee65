package sandbox_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var acts = map[string]func(string) error{
	"nothing": func(string) error { return nil },
	"priority": func(string) error {
		level, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		fmt.Println(20 - level)
		return err
	},
	"read": func(path string) error {
		_, err := os.ReadFile(path)
		return err
	},
	"list": func(path string) error {
		_, err := os.ReadDir(path)
		return err
	},
	"write":  func(path string) error { return os.WriteFile(path, []byte("written"), 0o600) },
	"link":   func(path string) error { return os.Symlink("/etc", path) },
	"device": func(path string) error { return unix.Mkfifo(path, 0o600) },
	"socket": func(kind string) error {
		families := map[string][2]int{
			"tcp": {unix.AF_INET, unix.SOCK_STREAM}, "udp": {unix.AF_INET, unix.SOCK_DGRAM},
			"unix":    {unix.AF_UNIX, unix.SOCK_STREAM},
			"netlink": {unix.AF_NETLINK, unix.SOCK_RAW},
		}
		_, err := unix.Socket(families[kind][0], families[kind][1], 0)
		return err
	},
	"connect": func(address string) error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err
	},
	"trace": func(string) error {
		_, _, errno := unix.RawSyscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0)
		return failed(errno)
	},
	"namespace": func(string) error {
		pid, err := syscall.ForkExec("/proc/self/exe", []string{"child"}, &syscall.ProcAttr{
			Env: []string{actName + "=nothing"}, Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER},
		})
		if err == nil {
			_, err = syscall.Wait4(pid, nil, 0, nil)
		}
		return err
	},
	"key": func(string) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true)
		return err
	},
	"bpf":  func(string) error { return unsupported(unix.SYS_BPF) },
	"ring": func(string) error { return unsupported(unix.SYS_IO_URING_SETUP) },
	"kexec": func(string) error {
		_, _, errno := unix.RawSyscall(unix.SYS_KEXEC_LOAD, 0, 0, 0)
		return failed(errno)
	},
	"signal":  func(string) error { return unix.Kill(os.Getpid(), 0) },
	"shorten": func(path string) error { return unix.Truncate(path, 1) },
	"age":     func(path string) error { return os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)) },
	// The next actions change an unrelated process, given by its id.
	"limit": func(process string) error {
		pid, limit := number(process), unix.Rlimit{}
		return errors.Join(unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit), unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil))
	},
	"slow": func(process string) error {
		const most = 20 // getpriority returns 20 minus the nice value
		level, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		return errors.Join(err, unix.Setpriority(unix.PRIO_PROCESS, number(process), most-level))
	},
	"place": func(process string) error {
		var processors unix.CPUSet
		err := unix.SchedGetaffinity(0, &processors)
		return errors.Join(err, unix.SchedSetaffinity(number(process), &processors))
	},
	"alarm": func(process string) error {
		var ends [2]int
		if err := unix.Pipe(ends[:]); err != nil {
			return err
		}
		_, err := unix.FcntlInt(uintptr(ends[0]), unix.F_SETOWN, number(process))
		return err
	},
	"start": func(string) error {
		pid, err := syscall.ForkExec(
			"/proc/self/exe", []string{"child"}, &syscall.ProcAttr{Env: []string{actName + "=nothing"}},
		)
		if err == nil {
			_, err = syscall.Wait4(pid, nil, 0, nil)
		}
		return err
	},
	"become": func(path string) error { return syscall.Exec(path, []string{path}, nil) },
	"memory": func(size string) error {
		bytes, err := strconv.Atoi(size)
		if err == nil {
			_, err = unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		}
		return err
	},
	"files": func(count string) error {
		n, err := strconv.Atoi(count)
		for range n {
			if _, err = unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
				return err
			}
		}
		return err
	},
	"fill": func(path string) error { return os.WriteFile(path, make([]byte, 2<<20), 0o600) },
	"spin": func(string) error {
		for {
			if os.Getpid() == 0 {
				return nil
			}
		}
	},
	"descriptor": func(number string) error {
		fd, err := strconv.Atoi(number)
		if err == nil {
			_, err = unix.Read(fd, make([]byte, 1))
		}
		return err
	},
	"whoami": func(string) error {
		_, err := fmt.Printf("%d %d\n", os.Getuid(), os.Getgid())
		return err
	},
}

func failed(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

func number(process string) int {
	pid, err := strconv.Atoi(process)
	if err != nil {
		panic(err)
	}
	return pid
}

// unsupported returns an error if a system call is denied. If the kernel complains about invalid arguments, the call
// was allowed.
func unsupported(call uintptr) error {
	_, _, errno := unix.RawSyscall(call, 0, 0, 0)
	if errno == unix.EINVAL || errno == unix.EFAULT {
		return nil
	}
	return failed(errno)
}

// These environment variables make the test binary act like a compromised program.
const actName, actArgument = "SANDBOX_ACT", "SANDBOX_ARGUMENT"

func act(name string) {
	do, found := acts[name]
	if !found {
		fmt.Fprintln(os.Stderr, "unknown act")
		os.Exit(3)
	}
	if err := do(os.Getenv(actArgument)); err != nil {
		if errno := syscall.Errno(0); errors.As(err, &errno) {
			fmt.Fprintln(os.Stderr, unix.ErrnoName(errno))
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
