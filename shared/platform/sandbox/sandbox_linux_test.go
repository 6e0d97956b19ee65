package sandbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cutroom/shared/platform/sandbox"
	"cutroom/shared/testkit/await"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(actName); name != "" {
		act(name)
	}
	os.Exit(m.Run())
}

func newSandbox(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	f, err := sandbox.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

type world struct {
	folder, input, secret string
	program               sandbox.Program
}

func newWorld(t *testing.T) world {
	t.Helper()
	folder := t.TempDir()
	w := world{
		filepath.Join(folder, "own"), filepath.Join(folder, "input"), filepath.Join(folder, "cutroom.db"), sandbox.Program{},
	}
	err := os.Mkdir(w.folder, 0o700)
	for _, path := range []string{w.input, w.secret, filepath.Join(w.folder, "mine")} {
		// Every user may read these files, so only the sandbox protects them.
		err = errors.Join(err, os.WriteFile(path, []byte("content"), 0o644), os.Chmod(path, 0o644))
	}
	var programErr error
	w.program, programErr = sandbox.NewProgram(t.Context(), "/proc/self/exe")
	if err := errors.Join(err, programErr, os.Chmod(folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	return w
}

type outcome struct {
	err         error
	output, log string
	ran         bool
	reason      string
}

func (w world) do(t *testing.T, f *sandbox.Sandbox, name, argument string, change func(*sandbox.Plan)) outcome {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	plan := sandbox.Plan{
		Program: w.program, Folder: w.folder, Inputs: []string{w.input},
		Memory: 8 << 30, MaxFile: 1 << 20, ProcessorTime: time.Minute,
	}
	if change != nil {
		change(&plan)
	}
	ctx := await.Context(t)
	cmd, start, err := f.Command(ctx, plan)
	if err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	cmd.Env = append(cmd.Env, actName+"="+name, actArgument+"="+argument)
	cmd.Stdout, cmd.Stderr = &out, &log
	o := outcome{err: cmd.Run()}
	o.ran, o.reason = start.Ended()
	o.output, o.log = out.String(), log.String()
	return o
}

func unsandboxed(t *testing.T, name, argument string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), actName+"="+name, actArgument+"="+argument)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return err
}

func TestPermittedActionsWork(t *testing.T) {
	f, w := newSandbox(t), newWorld(t)
	for _, test := range []struct{ name, act, argument string }{
		{"its input", "read", w.input},
		{"a file in its folder", "read", filepath.Join(w.folder, "mine")},
		{"its folder", "list", w.folder},
		{"a result", "write", filepath.Join(w.folder, "result")},
		{"a name relative to its folder", "write", "relative"},
		{"memory within the limit", "memory", "1000000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if o := w.do(t, f, test.act, test.argument, nil); o.err != nil || !o.ran {
				t.Errorf("got %v: %s %s", o.err, o.reason, o.log)
			}
		})
	}
	if content, err := os.ReadFile(filepath.Join(w.folder, "relative")); err != nil || string(content) != "written" {
		t.Errorf("the result is %q, %v", content, err)
	}
}

// The actions succeed without the layers that deny them. This proves that those layers are responsible.
func TestForbiddenActionsAreDenied(t *testing.T) {
	f := newSandbox(t)
	if len(f.Lacks()) > 0 && os.Getuid() != 0 {
		t.Fatalf("this machine lacks %v; the test needs all layers", f.Lacks())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	const denied, refused = "EACCES", "EPERM"
	calls := sandbox.Layers{Seccomp: true}
	files := sandbox.Layers{Landlock: true, User: true}
	all := sandbox.Layers{Seccomp: true, Landlock: true, Namespaces: true, User: true}
	outside := filepath.Join(t.TempDir(), "new")
	if err := os.Chmod(filepath.Dir(outside), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, act, argument, want string
		without                   sandbox.Layers
	}{
		{"the database", "read", "SECRET", denied, files},
		{"the passwords", "read", "/etc/passwd", denied, files},
		{"another process", "list", "/proc", denied, files},
		{"another folder", "list", "PARENT", denied, files},
		{"write to its input", "write", "INPUT", denied, files},
		{"write next to its folder", "write", outside, denied, files},
		{"a link out of its folder", "link", "OWN/link", refused, all},
		{"a pipe in its folder", "device", "OWN/pipe", refused, all},
		{"a TCP socket", "socket", "tcp", refused, calls},
		{"a UDP socket", "socket", "udp", refused, calls},
		{"a Unix socket", "socket", "unix", refused, calls},
		{"a netlink socket", "socket", "netlink", refused, calls},
		{"a connection", "connect", listener.Addr().String(), refused, all},
		{"trace", "trace", "", refused, calls},
		{"namespaces", "namespace", "", refused, all},
		{"keys", "key", "", refused, calls},
		{"BPF", "bpf", "", refused, all},
		{"io_uring", "ring", "", "ENOSYS", all},
		{"signals", "signal", "", refused, calls},
		{"a signal by way of a descriptor", "alarm", "SERVER", refused, all},
		{"limits of another process", "limit", "SERVER", refused, all},
		{"the priority of another process", "slow", "SERVER", refused, all},
		{"the processors of another process", "place", "SERVER", refused, all},
		{"the length of the database, by its name", "shorten", "SECRET", refused, all},
		{"the times of the database", "age", "SECRET", refused, all},
		{"start a process", "start", "", refused, calls},
		{"become another program", "become", "/bin/true", denied, files},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			argument := strings.NewReplacer(
				"SECRET", w.secret, "INPUT", w.input, "OWN", w.folder, "PARENT", filepath.Dir(w.folder),
				"SERVER", strconv.Itoa(os.Getpid()),
			).Replace(test.argument)
			o := w.do(t, f, test.act, argument, nil)
			if o.err == nil || !o.ran || !strings.HasPrefix(o.log, test.want) {
				t.Errorf("sandboxed: got %v, ran %v: %s %s", o.err, o.ran, o.log, o.reason)
			}
			if test.name == "BPF" || os.Getuid() == 0 && (test.act == "slow" || test.act == "place") {
				return // only root, or a process with all capabilities, may do this
			}
			w = newWorld(t)
			argument = strings.NewReplacer(
				"SECRET", w.secret, "INPUT", w.input, "OWN", w.folder, "PARENT", filepath.Dir(w.folder),
				"SERVER", strconv.Itoa(os.Getpid()),
			).Replace(test.argument)
			if o := w.do(t, f.Without(test.without), test.act, argument, nil); o.err != nil {
				t.Errorf("without the layer: got %v: %s %s", o.err, o.log, o.reason)
			}
		})
	}
}

func TestNamespacesBlockNetworkWithoutSeccomp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	f, w := newSandbox(t), newWorld(t)
	loose := f.Without(sandbox.Layers{Seccomp: true, Landlock: true, User: true})
	if o := w.do(t, loose, "connect", listener.Addr().String(), nil); o.err == nil ||
		!strings.Contains(o.log, "ENETUNREACH") {
		t.Errorf("got %v: %s", o.err, o.log)
	}
}

func TestResourcesAreLimited(t *testing.T) {
	f, w := newSandbox(t), newWorld(t)
	for _, test := range []struct {
		name, act, argument string
		change              func(*sandbox.Plan)
	}{
		{"memory", "memory", "4000000000", func(p *sandbox.Plan) { p.Memory = 3 << 30 }},
		{"open files", "files", "100", nil},
		{"a file's size", "fill", "large", nil},
		{"processor time", "spin", "", func(p *sandbox.Plan) { p.ProcessorTime = time.Second }},
	} {
		t.Run(test.name, func(t *testing.T) {
			if o := w.do(t, f, test.act, test.argument, test.change); o.err == nil || !o.ran {
				t.Errorf("got %v, ran %v: %s", o.err, o.ran, o.log)
			}
			argument := test.argument
			if test.act == "spin" {
				return // without a limit, it would never end
			}
			if test.act == "fill" {
				argument = filepath.Join(t.TempDir(), argument)
			}
			if err := unsandboxed(t, test.act, argument); err != nil {
				t.Errorf("without the sandbox: %v", err)
			}
		})
	}
}

// The server's parent process left the descriptor open.
func TestInheritedDescriptorIsClosed(t *testing.T) {
	w := newWorld(t)
	fd, err := unix.Open(w.secret, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	// This is higher than any of the launcher's descriptors.
	const high = 40
	if err := unix.Dup2(fd, high); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(high)
	if o := w.do(t, newSandbox(t), "descriptor", fmt.Sprint(high), nil); o.err == nil || !strings.HasPrefix(o.log, "EBADF") {
		t.Errorf("got %v: %s", o.err, o.log)
	}
	if err := unsandboxed(t, "descriptor", fmt.Sprint(high)); err != nil {
		t.Errorf("without the sandbox: %v", err)
	}
}

// If the server runs as root, the program runs as a separate user.
func TestProgramRunsAsOwnUser(t *testing.T) {
	f, w := newSandbox(t), newWorld(t)
	o := w.do(t, f, "whoami", "", nil)
	want := "65533 65533\n"
	if os.Getuid() != 0 || len(f.Lacks()) > 0 {
		want = fmt.Sprintf("%d %d\n", os.Getuid(), os.Getgid())
	}
	if o.err != nil || o.output != want {
		t.Errorf("the user is %q, %v; want %q", o.output, o.err, want)
	}
}

// A program that cannot be started is reported differently from one that fails.
func TestFailedStartIsReported(t *testing.T) {
	f, w := newSandbox(t), newWorld(t)
	for name, change := range map[string]func(*sandbox.Plan){
		"no program": func(p *sandbox.Plan) { p.Program, _ = sandbox.NewProgram(t.Context(), w.input) },
		"no memory":  func(p *sandbox.Plan) { p.Reserve, p.Memory = true, 1<<47 },
	} {
		t.Run(name, func(t *testing.T) {
			if o := w.do(t, f, "nothing", "", change); o.ran || o.err == nil || o.reason == "" {
				t.Errorf("got %+v", o)
			}
		})
	}
	if o := w.do(t, f, "nothing", "", func(p *sandbox.Plan) { p.Reserve, p.Memory = true, 1<<30 }); o.err != nil || !o.ran {
		t.Errorf("with memory to reserve: %+v", o)
	}
}

func TestOrdinaryUserSandboxIsComplete(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("already running as an ordinary user")
	}
	folder, err := os.MkdirTemp("", "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	const nobody = 65534
	if err := os.Chown(folder, nobody, nobody); err != nil {
		t.Skipf("cannot run as root of a user namespace: %v", err)
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "program"), program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(
		t.Context(), filepath.Join(folder, "program"),
		"-test.run=^(TestPermittedActionsWork|TestForbiddenActionsAreDenied|TestNamespacesBlockNetworkWithoutSeccomp|TestResourcesAreLimited|TestProgramRunsAsOwnUser)$",
	)
	cmd.Env = append(os.Environ(), "TMPDIR="+folder)
	cmd.Dir = folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestBackgroundLowersPriority(t *testing.T) {
	f, w := newSandbox(t).Without(sandbox.Layers{Seccomp: true}), newWorld(t)
	nice := func(background bool) (value int) {
		done := w.do(t, f, "priority", "", func(p *sandbox.Plan) { p.Background = background })
		if _, err := fmt.Sscan(done.output, &value); done.err != nil || err != nil {
			t.Fatalf("%v, %v: %s", done.err, err, done.log)
		}
		return value
	}
	if usual, background := nice(false), nice(true); background != min(usual+5, 19) {
		t.Errorf("a background program has the nice value %d, another one %d", background, usual)
	}
}
