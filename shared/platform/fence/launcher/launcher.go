// Package launcher is what this program is while it runs under [Name]: it applies
// the layers of a fence to itself and becomes another program. Package fence
// starts it.
//
// It imports a few packages of the standard library and no others. Of the packages
// whose imports are initialized Go initializes the one with the least path first,
// so that this one precedes all whose paths begin with a host, such as github.com.
// The initialization of those takes more processor time than all that a launcher
// does, and each start of ffmpeg would take it, at the server's own priority.
package launcher

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

const (
	// Name is the name, argv[0], under which this program is the launcher.
	Name = "cutroom-fence"
	// ExitNotRun is the exit code of a launcher that could not start its program.
	ExitNotRun = 126
	// OwnUser is the user and the group that programs run as if the server is root.
	// No distribution assigns it: systemd's list of users has it as unused.
	OwnUser = 65533
	// MaxOpen bounds the files that a program has open at once.
	MaxOpen = 64
	// OwnProcess stands in a filter for the number of the program's process, which
	// only the launcher knows. It is above all numbers of processes (PID_MAX_LIMIT,
	// include/linux/threads.h), and no other number of a filter.
	OwnProcess = 0x7ffffffe
)

// Order is what a launcher is to do.
type Order struct {
	// Ask makes it report what it can do ([Ability]), and nothing else.
	Ask bool

	// Program is the path of the program, Args what follows its name.
	Program string
	Args    []string
	// Executes, Reads and Folder are what it may execute and read, and where it may
	// write, "" for nowhere.
	Executes, Reads []string
	Folder          string

	// Filter is the program of seccomp, none to leave it out: an instruction of
	// BPF each (struct sock_filter, include/uapi/linux/filter.h), the code in the
	// highest 16 bits, then jt and jf, and k in the lowest 32.
	Filter []uint64
	// Landlock restricts the files, User changes the user; Root says that the
	// server is root, whose rights are dropped.
	Landlock, User, Root bool

	// Memory and MaxFile are in bytes, Seconds of processor time.
	Memory, MaxFile, Seconds int64
	// Reserve makes it fail if the system could not provide the memory now,
	// Background makes the program yield to others.
	Reserve, Background bool
	// Status is the descriptor on which it reports that it becomes the program.
	Status int
}

// Ability is what a launcher reports about the layers.
type Ability struct {
	// Landlock is the version of the kernel's interface, 0 for none.
	Landlock      int
	Seccomp, User bool
}

// A program that is run under the launcher's name is the launcher, whichever
// program of the service it is, including tests. This is a case for init: a
// main that forgot to check would serve, or test, once more for every run of
// ffmpeg; and the initialization of other packages would cost each run its
// time.
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
		_, _ = syscall.Write(o.Status, []byte("\n"+err.Error()))
	}
	os.Exit(ExitNotRun)
}

func complain(err error) { _, _ = os.Stderr.WriteString("fence: " + err.Error() + "\n") }

// failed adds what was done to an error. Package fmt would do it as well, and have
// much of the standard library initialized first.
func failed(what string, err error) error { return errors.New(what + ": " + err.Error()) }

// String returns the ability as [ParseAbility] reads it.
func (a Ability) String() string {
	return strconv.Itoa(a.Landlock) + "," + strconv.FormatBool(a.Seccomp) + "," + strconv.FormatBool(a.User)
}

// ParseAbility reads what a launcher has written.
func ParseAbility(written string) (a Ability, err error) {
	version, rest, _ := cut(written, ',')
	seccomp, user, _ := cut(rest, ',')
	var errs [3]error
	a.Landlock, errs[0] = strconv.Atoi(version)
	a.Seccomp, errs[1] = strconv.ParseBool(seccomp)
	a.User, errs[2] = strconv.ParseBool(user)
	return a, errors.Join(errs[:]...)
}

// cut slices a text around the first separator.
func cut(text string, separator byte) (before, after string, found bool) {
	for i := range len(text) {
		if text[i] == separator {
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}
