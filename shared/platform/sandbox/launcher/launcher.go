// Package launcher turns this program into the launcher if it runs under [Name]. The launcher applies the
// sandbox's layers to itself and then executes another program. Package sandbox starts it.
//
// The package imports only a few standard packages. Go initializes packages in order of their paths, once their
// imports are initialized, so this package precedes all packages whose paths begin with a host, such as github.com.
// Initializing those packages takes more CPU time than the launcher's work, and would delay every start of ffmpeg.
package launcher

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

const (
	// Name is the argv[0] that makes this program the launcher.
	Name = "cutroom-sandbox"
	// ExitNotRun is the exit code of a launcher that could not start its program.
	ExitNotRun = 126
	// OwnUser is the user and group of sandboxed programs if the server runs as root. No
	// distribution assigns this id: systemd's list of users shows it as unused.
	OwnUser = 65533
	// MaxOpen limits a program's open files.
	MaxOpen = 64
	// OwnProcess stands for the process id in a filter, because only the launcher knows the id. It
	// is above all process ids (PID_MAX_LIMIT, include/linux/threads.h).
	OwnProcess = 0x7ffffffe
)

type Order struct {
	// Ask makes the launcher only report its [Ability].
	Ask bool

	Program string
	Args    []string
	// Executes and Reads list the files that the program may execute and read. Folder is the writable folder, or "".
	Executes, Reads []string
	Folder          string

	// Filter is the seccomp program with one instruction per word (struct sock_filter), or nil. A
	// word holds the code in the highest 16 bits, then jt and jf, and k in the lowest 32.
	Filter []uint64
	// Root means that the server runs as root, so its capabilities are dropped.
	Landlock, User, Root bool

	// Memory and MaxFile are in bytes. Seconds is CPU time.
	Memory, MaxFile, Seconds int64
	// Reserve makes the launch fail if there is not enough memory. Background lowers the priority.
	Reserve, Background bool
	// Status is the descriptor for reporting that the launcher is about to execute the program.
	Status int64
}

type Ability struct {
	// Landlock is the version of the kernel's Landlock interface, or 0.
	Landlock      int
	Seccomp, User bool
}

// Any program started under the launcher's name becomes the launcher, even a test. The launcher runs in init, before
// other packages are initialized, because initializing them would slow down every run.
func init() {
	if len(os.Args) == 0 || os.Args[0] != Name {
		return
	}
	o, err := parse(os.Args[1:])
	switch {
	case err != nil:
		complain(err)
	case o.Ask:
		if _, err := os.Stdout.WriteString(tryLayers(o).String()); err == nil {
			os.Exit(0)
		}
	default:
		err = launch(o)
		complain(err)
		_, _ = syscall.Write(int(o.Status), []byte("\n"+err.Error()))
	}
	os.Exit(ExitNotRun)
}

func complain(err error) { _, _ = os.Stderr.WriteString("sandbox: " + err.Error() + "\n") }

// failed does not use package fmt, which would require initializing much of the standard library first.
func failed(what string, err error) error { return errors.New(what + ": " + err.Error()) }

func (a Ability) String() string {
	return strconv.Itoa(a.Landlock) + "," + strconv.FormatBool(a.Seccomp) + "," + strconv.FormatBool(a.User)
}

func ParseAbility(written string) (a Ability, err error) {
	version, rest, _ := cut(written, ',')
	seccomp, user, _ := cut(rest, ',')
	var errs [3]error
	a.Landlock, errs[0] = strconv.Atoi(version)
	a.Seccomp, errs[1] = strconv.ParseBool(seccomp)
	a.User, errs[2] = strconv.ParseBool(user)
	return a, errors.Join(errs[:]...)
}

func cut(text string, separator byte) (before, after string, found bool) {
	for i := range len(text) {
		if text[i] == separator {
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}
