package ffmpeg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"cutroom/shared/platform/sandbox"
)

const (
	// A program's pipes may stay open for drainTime after it has exited.
	drainTime = 5 * time.Second
	// keptLog is how much of a program's last messages is kept, in bytes.
	keptLog = 4 << 10
	// exitOfLinker is the dynamic linker's exit code for a missing library.
	exitOfLinker = 127
)

type process struct {
	program sandbox.Program
	args    []string
	// folder is the program's writable working folder, or "" if the program only reads.
	folder   string
	inputs   []string
	stdin    io.Reader
	stdout   io.Writer
	progress *os.File
	// processorTime limits the total CPU time of all threads.
	processorTime time.Duration
	maxFile       int64
	background    bool
	// reserve makes the start fail if the system cannot provide all of the memory.
	reserve bool
}

type failure struct {
	// program is a path, or "" if the run succeeded but produced nothing.
	program, log string
	// signal is the signal that killed the program, or 0.
	signal syscall.Signal
	notRun bool
	// overTime means that the program used up its CPU time. The field `most` holds the CPU time limit.
	overTime bool
	most     time.Duration
	err      error
}

func (f *failure) Error() string { return fmt.Sprintf("ffmpeg: %v: %s", f.err, f.log) }
func (f *failure) Unwrap() error { return f.err }

// run runs the program until it exits. When the context ends, the entire process group is killed.
// Errors: the context's; *failure if the program failed.
func (t *Tools) run(ctx context.Context, p process) error {
	_, err := t.say(ctx, p)
	return err
}

// say is like run, but also returns the program's last messages.
func (t *Tools) say(ctx context.Context, p process) (messages string, err error) {
	// The child dies with the thread that started it: see [sandbox.Sandbox.Command].
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	plan := sandbox.Plan{
		Program: p.program, Args: p.args, Folder: p.folder, Inputs: p.inputs,
		Memory: t.bounds.memory, MaxFile: p.maxFile, ProcessorTime: p.processorTime, Reserve: p.reserve, Background: p.background,
	}
	if p.progress != nil {
		plan.Extra = []*os.File{p.progress}
	}
	cmd, start, err := t.box.Command(ctx, plan)
	if err != nil {
		return "", &failure{program: p.program.Path, notRun: true, err: err}
	}
	log := &tail{limit: keptLog}
	// The child gets no other variables. With more arenas, its threads would use up the address space.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "MALLOC_ARENA_MAX=2"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, p.stdout, log
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	cmd.WaitDelay = drainTime
	err = cmd.Run()
	ran, reason := start.Ended()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if !ran {
		return "", &failure{program: p.program.Path, notRun: true, log: log.String(), err: fmt.Errorf("%s: %w", reason, err)}
	}
	f := &failure{program: p.program.Path, log: log.String(), most: p.processorTime, err: err}
	if err == nil {
		if !f.says("Error writing trailer") && !f.says("Error closing file") {
			return f.log, nil
		}
		// FFmpeg 5 exits with 0 even if it cannot finish writing a file.
		f.err = errors.New("a file was not written completely")
	}
	if state := cmd.ProcessState; state != nil {
		f.notRun = state.ExitCode() == exitOfLinker && f.says("error while loading shared libraries")
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			f.signal = status.Signal()
		}
		// If a program is killed at the limit, the system may report slightly less CPU time than the limit.
		f.overTime = state.UserTime()+state.SystemTime() >= p.processorTime-p.processorTime/8
	}
	return f.log, f
}

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
