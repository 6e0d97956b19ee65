package lambdatest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"cutroom/shared/testkit/programtest"
)

var errEnded = errors.New("the function's process has ended")

// Timeout is the time limit passed to the function. It is longer than any invocation takes, even on a busy machine.
const Timeout = 4 * time.Minute

// Function is a running function, which Lambda calls an execution environment. The caller of Start must kill it.
type Function struct {
	api *runtimeAPI
	cmd *exec.Cmd
	log *programtest.Output
	// ended is closed once the process has exited.
	ended   chan struct{}
	started time.Duration
}

// Start starts a function and waits for its first poll. The function gets the environment that
// Lambda sets, plus the given settings.
//
// Errors: the process exited, with its log; the context's error.
func Start(ctx context.Context, program Program, settings ...string) (*Function, error) {
	api, err := newRuntimeAPI()
	if err != nil {
		return nil, err
	}
	f := &Function{api: api, cmd: exec.Command(string(program)), log: &programtest.Output{}, ended: make(chan struct{})}
	f.cmd.Env = append([]string{
		"AWS_LAMBDA_RUNTIME_API=" + api.address(),
		"AWS_LAMBDA_FUNCTION_NAME=test", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512",
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_SESSION_TOKEN=test",
	}, settings...)
	f.cmd.Stdout, f.cmd.Stderr = f.log, f.log
	f.cmd.WaitDelay = 5 * time.Second
	f.cmd.SysProcAttr = endWithParent()
	begun := make(chan error)
	start := time.Now()
	go func() {
		// The kernel kills the process when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := f.cmd.Start()
		begun <- err
		if err == nil {
			_ = f.cmd.Wait() // ProcessState has the exit status
			close(f.ended)
		}
	}()
	if err := <-begun; err != nil {
		api.close()
		return nil, fmt.Errorf("start the function: %w", err)
	}
	select {
	case <-api.polled:
		f.started = time.Since(start)
		return f, nil
	case <-f.ended:
		err = fmt.Errorf("the function exited with code %d: %s", f.cmd.ProcessState.ExitCode(), f.log)
	case <-ctx.Done():
		err = fmt.Errorf("the function does not poll: %w", context.Cause(ctx))
	}
	f.Kill()
	return nil, err
}

func (f *Function) StartTime() time.Duration { return f.started }

func (f *Function) PID() int { return f.cmd.Process.Pid }

func (f *Function) Log() string { return f.log.String() }

func (f *Function) Kill() {
	_ = f.cmd.Process.Kill() // fails if it has already exited
	<-f.ended
	f.api.close()
}
