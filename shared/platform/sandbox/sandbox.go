// Package sandbox starts programs that read untrusted files, such as ffmpeg, in a sandbox, so that
// a compromised program can do almost nothing.
//
// A program in the sandbox can read itself, its libraries and its inputs, and write to one folder.
// It cannot open a socket, start another program, see other processes or gain privileges. Its
// memory, CPU time, file size and open files are limited. The layers are:
//
//   - limits (setrlimit) and no_new_privs, which every machine has;
//   - seccomp, which allows only the system calls that decoding needs;
//   - Landlock, which allows only the listed files;
//   - separate namespaces for network, processes and IPC, in a user namespace
//     if the server does not run as root;
//   - a separate user, if the server runs as root.
//
// [New] determines once which layers a machine lacks, and [Sandbox.Lacks] returns them. If a layer that the machine
// has fails for one program, that program is not started: no program runs with fewer layers than reported.
//
// Some layers can be applied only by the process that then becomes the program. Therefore this
// program runs itself again under another name: see package launcher.
package sandbox

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/platform/sandbox/launcher"
)

// Layers lists the parts of the sandbox that some machines lack.
type Layers struct {
	Seccomp, Landlock, Namespaces, User bool
}

// Sandbox uses the layers that this machine supports. Its methods are safe for concurrent use.
type Sandbox struct {
	// self is the path of this program, which becomes the launcher.
	self   string
	layers Layers
	// landlock is the version of the kernel's Landlock interface, or 0.
	landlock int
	root     bool
	// filter is the seccomp program, or nil.
	filter []uint64
}

type Program struct {
	Path            string
	executes, reads []string
}

type Plan struct {
	Program Program
	Args    []string
	// Folder is the writable working folder, or "" if the program only reads.
	Folder string
	Inputs []string
	// Extra lists open files that the program inherits, as descriptors 3 and up.
	Extra []*os.File
	// Memory limits the address space. MaxFile limits the size of each written file. Both are in bytes.
	Memory, MaxFile int64
	// ProcessorTime limits the total CPU time of all threads, in whole seconds.
	ProcessorTime time.Duration
	// Background gives the program a lower priority than the server.
	Background bool
	// Reserve makes the start fail if the system cannot provide all of Memory.
	Reserve bool
}

// New detects which layers this machine supports. It fails if this program cannot execute itself.
func New(ctx context.Context) (*Sandbox, error) {
	self, err := ownProgram()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	f := &Sandbox{self: self, root: os.Geteuid() == 0, filter: callFilter()}
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
	// The capability lets the user read all files, so Landlock must limit that to the inputs.
	f.layers.User = able.User && f.layers.Landlock
	if !f.layers.Landlock && !f.layers.Namespaces {
		hideProcess()
	}
	return f, nil
}

func (f *Sandbox) ask(ctx context.Context, layers Layers) (able launcher.Ability, err error) {
	cmd := f.launcher(ctx, launcher.Order{Ask: true, Root: f.root, Filter: f.filter}, nil, layers)
	answer, err := cmd.Output()
	if err == nil {
		able, err = launcher.ParseAbility(string(answer))
	}
	if err != nil {
		return able, fmt.Errorf("sandbox: this program cannot run itself: %w", err)
	}
	return able, ctx.Err()
}

// Lacks explains the consequence of each missing layer, in one line per layer.
func (f *Sandbox) Lacks() []string {
	if runtime.GOOS != "linux" {
		return []string{"this system supports only resource limits: a compromised decoder can do everything that the server's user can"}
	}
	var lacks []string
	if !f.layers.Seccomp {
		lacks = append(lacks, "no seccomp: a decoder may use every system call")
	}
	if !f.layers.Landlock {
		lacks = append(lacks, "no Landlock (Linux 5.13 or newer, with landlock among its LSMs):"+
			"a decoder may read everything that the server's user can")
	}
	if !f.layers.Namespaces {
		lacks = append(lacks,
			"no namespaces: only the other layers keep a decoder from the server's network and processes")
	}
	if f.root && !f.layers.User {
		lacks = append(lacks, "no separate user for decoders: run the server as an ordinary user")
	}
	return lacks
}

func (f *Sandbox) LogLacks(logger *slog.Logger) {
	if lacks := f.Lacks(); len(lacks) > 0 {
		logger.Warn("this machine lacks sandbox layers", "sandboxed_by", f.String(), "lacks", strings.Join(lacks, "; "))
	}
}

func (f *Sandbox) String() string {
	parts := "limits"
	for _, layer := range []struct {
		there bool
		name  string
	}{
		{f.layers.Seccomp, "seccomp"},
		{f.layers.Landlock, "Landlock " + strconv.Itoa(f.landlock)},
		{f.layers.Namespaces, "namespaces"},
		{f.layers.User, "a separate user"},
	} {
		if layer.there {
			parts += ", " + layer.name
		}
	}
	return parts
}

// Without returns a sandbox without some layers. Tests use it to find out which layer prevents an action.
func (f *Sandbox) Without(out Layers) *Sandbox {
	less := *f
	less.layers = Layers{
		Seccomp: f.layers.Seccomp && !out.Seccomp, Landlock: f.layers.Landlock && !out.Landlock,
		Namespaces: f.layers.Namespaces && !out.Namespaces, User: f.layers.User && !out.User && !out.Landlock,
	}
	return &less
}

// Command prepares a run with an empty environment. On Linux, the program dies with the thread that
// started it. The caller sets the streams, Cancel and WaitDelay, and finally closes the Start.
func (f *Sandbox) Command(ctx context.Context, plan Plan) (*exec.Cmd, *Start, error) {
	if f.layers.User && plan.Folder != "" {
		if err := os.Chown(plan.Folder, launcher.OwnUser, launcher.OwnUser); err != nil {
			return nil, nil, fmt.Errorf("sandbox: give the program its folder: %w", err)
		}
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: %w", err)
	}
	o := launcher.Order{
		Program: plan.Program.Path, Args: plan.Args, Executes: plan.Program.executes,
		Reads: append(append([]string{}, plan.Program.reads...), plan.Inputs...), Folder: plan.Folder,
		Landlock: f.layers.Landlock, User: f.layers.User, Root: f.root,
		Memory: plan.Memory, MaxFile: plan.MaxFile, Seconds: max(1, int64(plan.ProcessorTime.Seconds())),
		Reserve: plan.Reserve, Background: plan.Background, Status: 3 + int64(len(plan.Extra)),
	}
	if f.layers.Seccomp {
		o.Filter = f.filter
	}
	cmd := f.launcher(ctx, o, append(append([]*os.File{}, plan.Extra...), write), f.layers)
	if cmd.Dir = plan.Folder; cmd.Dir == "" {
		cmd.Dir = "/"
	}
	return cmd, &Start{read: read, write: write}, nil
}

func (f *Sandbox) launcher(ctx context.Context, o launcher.Order, files []*os.File, layers Layers) *exec.Cmd {
	cmd := exec.CommandContext(ctx, f.self)
	cmd.Args = o.CommandLine()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.ExtraFiles = files
	cmd.SysProcAttr = attributes(layers.Namespaces, f.root)
	return cmd
}

// Start reports whether a program was started.
type Start struct{ read, write *os.File }

// Ended reports whether the launcher executed the program. Call it after the process has exited or failed to start.
func (s *Start) Ended() (ran bool, reason string) {
	s.write.Close()
	defer s.read.Close()
	report, _ := io.ReadAll(io.LimitReader(s.read, 4<<10))
	if len(report) == 0 {
		return false, "the launcher exited before it started the program"
	}
	return len(report) == 1, string(report[1:])
}
