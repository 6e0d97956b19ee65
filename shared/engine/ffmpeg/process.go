package ffmpeg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const (
	// drainTime is how long the pipes of a program that has ended may stay
	// open.
	drainTime = 5 * time.Second
	// keptLog is how much of the end of a program's messages is kept for the
	// log, in bytes.
	keptLog = 4 << 10
)

// limitScript sets limits on the shell and then becomes the program. A limit
// that the system does not know (macOS has no address space limit) is left out
// rather than fatal. $1 is seconds, $2 KiB, $3 blocks of 512 bytes.
const limitScript = `{ ulimit -t "$1"; ulimit -v "$2"; ulimit -f "$3"; ulimit -c 0; } 2>/dev/null; shift 3; exec "$@"`

// process is one run of a program within its limits.
type process struct {
	program string
	args    []string
	folder  string
	stdin   io.Reader
	stdout  io.Writer
	// progress becomes file descriptor 3 of the program, when not nil.
	progress *os.File
	// processorTime is the sum over all threads.
	processorTime time.Duration
	// maxFile bounds each file written, in bytes.
	maxFile int64
}

// failure is how a program ended that did not succeed.
type failure struct {
	// log is the end of what it said.
	log string
	// signal is what killed it, or 0.
	signal syscall.Signal
	// notRun says that it could not even be started.
	notRun bool
	// overTime says that it used up its processor time.
	overTime bool
	err      error
}

func (f *failure) Error() string {
	return fmt.Sprintf("ffmpeg: %v: %s", f.err, f.log)
}

func (f *failure) Unwrap() error { return f.err }

// run runs the program to its end. When the context ends, the whole process
// group is killed.
//
// Errors: the context's; *failure when the program failed.
func (t *Tools) run(ctx context.Context, p process) error {
	// The child dies with the thread that started it, see groupOfItsOwn.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	log := &tail{limit: keptLog}
	args := []string{"-c", limitScript, "sh",
		strconv.Itoa(max(1, int(p.processorTime.Seconds()))),
		strconv.FormatInt(t.bounds.memory>>10, 10),
		strconv.FormatInt((p.maxFile+511)/512, 10),
		p.program}
	cmd := exec.CommandContext(ctx, t.shell, append(args, p.args...)...)
	cmd.Dir = p.folder
	// Nothing of this program's surroundings reaches the child. Few arenas keep
	// many threads from spreading over the address space.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "MALLOC_ARENA_MAX=2"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, p.stdout, log
	if p.progress != nil {
		cmd.ExtraFiles = []*os.File{p.progress}
	}
	cmd.SysProcAttr = groupOfItsOwn()
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	cmd.WaitDelay = drainTime
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f := &failure{log: log.String(), err: err}
	if err == nil {
		if !f.says("Error writing trailer") && !f.says("Error closing file") {
			return nil
		}
		// FFmpeg 5 exits with 0 when the end of a file cannot be written.
		f.err = errors.New("a file was not written to its end")
	}
	if state := cmd.ProcessState; state != nil {
		f.notRun = state.ExitCode() == 126 || state.ExitCode() == 127 // of the shell
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			f.signal = status.Signal()
		}
		// A program that the limit killed is charged a little less than the
		// limit, as the system counts the two in different ways.
		f.overTime = state.UserTime()+state.SystemTime() >= p.processorTime-p.processorTime/8
	}
	return f
}

// tail keeps the last bytes written to it.
type tail struct {
	limit int
	kept  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	t.kept = append(t.kept, p[max(0, n-t.limit):]...)
	t.kept = t.kept[max(0, len(t.kept)-t.limit):]
	return n, nil
}

func (t *tail) String() string { return string(t.kept) }
