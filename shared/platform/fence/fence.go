// Package fence starts programs that read untrusted files, such as ffmpeg, so
// that a program that such a file takes over can do next to nothing.
//
// A fenced program can read itself, its libraries and its inputs, and write to
// one folder. It can open no socket, start no other program, see no other
// process and gain no privilege, and its memory, processor time, file size and
// open files are limited. The layers are:
//
//   - limits (setrlimit) and no_new_privs, which every machine has;
//   - seccomp, which leaves it the system calls that decoding takes;
//   - Landlock, which leaves it the files that it is given;
//   - namespaces of its own for network, processes and IPC, by a user namespace
//     where the server is not root;
//   - a user of its own, where the server is root.
//
// [New] finds out once which layers a machine lacks, and [Fence.Lacks] returns
// them. If a layer that the machine has fails for one program, that program is
// not started: nothing runs with less than was reported.
//
// Some layers can only be applied by the process itself before it becomes the
// program. For that, this program runs itself again under another name: see
// launch.go.
package fence

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Layers are the parts of a fence that a machine may lack.
type Layers struct {
	Seccomp, Landlock, Namespaces, User bool
}

// Fence starts fenced programs with the layers that this machine has. Its
// methods are safe for concurrent use.
type Fence struct {
	// self is this program, which becomes the launcher.
	self   string
	layers Layers
	// landlock is the version of the kernel's interface, 0 for none.
	landlock int
	root     bool
}

// Program is a program, with what it needs of the system.
type Program struct {
	// Path is absolute.
	Path string
	// executes and reads are the files and folders of the system that it needs
	// to run.
	executes, reads []string
}

// Plan is one run of a program.
type Plan struct {
	Program Program
	Args    []string
	// Folder is where it works and may write; "" for a program that only reads.
	Folder string
	// Inputs are the files that it may read.
	Inputs []string
	// Extra are open files that it inherits, as descriptors 3 and up.
	Extra []*os.File
	// Memory bounds its address space, MaxFile each file that it writes; bytes.
	Memory, MaxFile int64
	// ProcessorTime is the sum over all threads; it counts whole seconds.
	ProcessorTime time.Duration
	// Background makes it yield to programs that somebody waits for, such as the server
	// itself, where there are not processors for all.
	Background bool
	// Reserve makes the start fail if the system could not provide all of
	// Memory.
	Reserve bool
}

// maxOpen bounds the files that a program has open at once.
const maxOpen = 64

// exitNotRun is the exit code of a launcher that could not start its program.
const exitNotRun = 126

// New finds out which layers this machine supports.
//
// Errors: the context's; this program cannot run itself.
func New(ctx context.Context) (*Fence, error) {
	self, err := ownProgram()
	if err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	f := &Fence{self: self, root: os.Geteuid() == 0}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	able, err := f.ask(ctx, Layers{Namespaces: runtime.GOOS == "linux"})
	if f.layers.Namespaces = err == nil && runtime.GOOS == "linux"; err != nil {
		if able, err = f.ask(ctx, Layers{}); err != nil {
			return nil, err
		}
	}
	f.landlock = able.Landlock
	f.layers.Seccomp, f.layers.Landlock = able.Seccomp, able.Landlock > 0
	// The user may read the inputs, wherever they are, by a capability that
	// would show it every file where Landlock did not bound it.
	f.layers.User = able.User && f.layers.Landlock
	if !f.layers.Landlock && !f.layers.Namespaces {
		hideProcess()
	}
	return f, nil
}

// ability is what a launcher answers about the layers.
type ability struct {
	Landlock      int
	Seccomp, User bool
}

// ask runs a launcher to find out what it can do.
func (f *Fence) ask(ctx context.Context, layers Layers) (ability, error) {
	var able ability
	cmd, err := f.launcher(ctx, order{Ask: true, Root: f.root}, nil, layers)
	if err != nil {
		return able, err
	}
	answer, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(answer, &able)
	}
	if err != nil {
		return able, fmt.Errorf("fence: this program cannot run itself: %w", err)
	}
	return able, ctx.Err()
}

// Lacks returns a line for each layer that this machine lacks and what that
// means; none if it has all.
func (f *Fence) Lacks() []string {
	if runtime.GOOS != "linux" {
		return []string{"this system has limits only: a decoder that a file takes over can do what the server's user can"}
	}
	var lacks []string
	if !f.layers.Seccomp {
		lacks = append(lacks, "no seccomp: a decoder may use every system call")
	}
	if !f.layers.Landlock {
		lacks = append(lacks, "no Landlock (Linux 5.13 or newer, with landlock among its LSMs): "+
			"a decoder may read what the server's user can")
	}
	if !f.layers.Namespaces {
		lacks = append(
			lacks, "no namespaces: a decoder is kept from the server's network and processes by the other layers alone",
		)
	}
	if f.root && !f.layers.User {
		lacks = append(lacks, "no user of their own for decoders: run the server as an ordinary user")
	}
	return lacks
}

// Tell logs what this machine lacks, once, at a server's start; nothing if it
// lacks nothing.
func (f *Fence) Tell(logger *slog.Logger) {
	if lacks := f.Lacks(); len(lacks) > 0 {
		logger.Warn("this machine cannot fence decoders whole", "fenced_by", f.String(), "lacks", strings.Join(lacks, "; "))
	}
}

// String returns the fence's layers.
func (f *Fence) String() string {
	parts := "limits"
	for _, layer := range []struct {
		there bool
		name  string
	}{
		{f.layers.Seccomp, "seccomp"},
		{f.layers.Landlock, "Landlock " + strconv.Itoa(f.landlock)},
		{f.layers.Namespaces, "namespaces"},
		{f.layers.User, "a user of its own"},
	} {
		if layer.there {
			parts += ", " + layer.name
		}
	}
	return parts
}

// Without returns a fence that leaves layers out.
//
// It is for tests, which verify which layer refuses something.
func (f *Fence) Without(out Layers) *Fence {
	less := *f
	less.layers = Layers{
		Seccomp: f.layers.Seccomp && !out.Seccomp, Landlock: f.layers.Landlock && !out.Landlock,
		Namespaces: f.layers.Namespaces && !out.Namespaces, User: f.layers.User && !out.User && !out.Landlock,
	}
	return &less
}

// Command prepares the plan's run. The caller sets standard input, output and
// error, Cancel and WaitDelay; the environment is empty. The thread that starts
// it must live as long as the program: on Linux the program dies with that
// thread. The caller closes the start when the program has ended.
//
// Errors: those of opening a pipe and of handing the folder over.
func (f *Fence) Command(ctx context.Context, plan Plan) (*exec.Cmd, *Start, error) {
	if f.layers.User && plan.Folder != "" {
		if err := os.Chown(plan.Folder, ownUser, ownUser); err != nil {
			return nil, nil, fmt.Errorf("fence: hand over the folder: %w", err)
		}
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("fence: %w", err)
	}
	o := order{
		Program: plan.Program.Path, Args: plan.Args, Executes: plan.Program.executes,
		Reads: append(append([]string{}, plan.Program.reads...), plan.Inputs...), Folder: plan.Folder,
		Seccomp: f.layers.Seccomp, Landlock: f.layers.Landlock, User: f.layers.User, Root: f.root,
		Memory: plan.Memory, MaxFile: plan.MaxFile, Seconds: max(1, int64(plan.ProcessorTime.Seconds())),
		Reserve: plan.Reserve, Background: plan.Background, Status: 3 + len(plan.Extra),
	}
	cmd, err := f.launcher(ctx, o, append(append([]*os.File{}, plan.Extra...), write), f.layers)
	if err != nil {
		read.Close()
		write.Close()
		return nil, nil, err
	}
	if cmd.Dir = plan.Folder; cmd.Dir == "" {
		cmd.Dir = "/"
	}
	return cmd, &Start{read: read, write: write}, nil
}

// launcher prepares a run of the launcher.
func (f *Fence) launcher(ctx context.Context, o order, files []*os.File, layers Layers) (*exec.Cmd, error) {
	encoded, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	cmd := exec.CommandContext(ctx, f.self)
	cmd.Args = []string{launcherName, string(encoded)}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.ExtraFiles = files
	cmd.SysProcAttr = attributes(layers.Namespaces, f.root)
	return cmd, nil
}

// Start knows whether a program was started.
type Start struct{ read, write *os.File }

// Ended reports, once the launcher has ended or could not be started, whether
// it had become the program, and if not why, if that is known.
func (s *Start) Ended() (ran bool, reason string) {
	s.write.Close()
	defer s.read.Close()
	told, _ := io.ReadAll(io.LimitReader(s.read, 4<<10))
	if len(told) == 0 {
		return false, "it ended before its start"
	}
	return len(told) == 1, string(told[1:])
}

// order is what a launcher is to do.
type order struct {
	// Ask makes it report what it can do, and nothing else.
	Ask bool `json:",omitempty"`

	Program         string
	Args            []string
	Executes, Reads []string
	Folder          string

	Seccomp, Landlock, User, Root bool

	Memory, MaxFile, Seconds int64
	Reserve, Background      bool
	// Status is the descriptor on which it reports that it becomes the program.
	Status int
}

// ownUser is the user and the group that decoders run as if the server is root.
// No distribution assigns it: systemd's list of users has it as unused.
const ownUser = 65533

// notRun reports why a launcher failed.
func notRun(status int, err error) {
	fmt.Fprintln(os.Stderr, "fence:", err)
	_, _ = syscall.Write(status, []byte("\n"+err.Error()))
	os.Exit(exitNotRun)
}
