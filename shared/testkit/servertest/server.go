package servertest

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"cutroom/shared/testkit/programtest"
)

// Server is a running `cutroom dev`. The caller must call Stop or Kill. On Linux, the server is
// also killed when the process that started it dies.
type Server struct {
	cmd *exec.Cmd
	// printed is the server's standard output. log is its standard error.
	printed, log *programtest.Output
	// ended is closed once the process has exited and all its output has been read.
	ended chan struct{}
}

// Start starts a server with the data folder on a free port, and waits until it is ready. settings
// are added to the package's settings or replace them.
func (p Program) Start(ctx context.Context, data string, settings ...string) (*Server, error) {
	server, err := p.Launch(data, settings...)
	if err != nil {
		return nil, err
	}
	if err := server.Ready(ctx); err != nil {
		server.Kill()
		return nil, err
	}
	return server, nil
}

// Launch starts a server with the data folder, without waiting until it is ready.
func (p Program) Launch(data string, settings ...string) (*Server, error) {
	server := &Server{printed: &programtest.Output{}, log: &programtest.Output{}, ended: make(chan struct{})}
	server.cmd = exec.Command(string(p), "dev")
	server.cmd.Env = environment(append([]string{
		"CUTROOM_DATA=" + data,
		"CUTROOM_ADDR=127.0.0.1:0",
		"CUTROOM_INFERENCE_ADDR=127.0.0.1:0",
		"CUTROOM_DEV_KEY=" + Key,
	}, settings...))
	server.cmd.Stdout, server.cmd.Stderr = server.printed, server.log
	server.cmd.WaitDelay = 5 * time.Second
	server.cmd.SysProcAttr = processGroup()
	started := make(chan error)
	go func() {
		// The kernel kills the server when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := server.cmd.Start()
		started <- err
		if err == nil {
			_ = server.cmd.Wait() // ProcessState has the exit status
			close(server.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	return server, nil
}

var address = regexp.MustCompile(`(?m)^\s*Media API\s+(http://\S+)$`)

// Ready waits until the server is ready.
//
// Errors: the server exited, with its log; the context's error.
func (s *Server) Ready(ctx context.Context) error {
	for {
		more := s.printed.More()
		if s.URL() != "" && s.healthy(ctx) {
			return nil
		}
		// Once the address is printed, /healthz shows whether everything has started.
		again := time.NewTimer(20 * time.Millisecond)
		if s.URL() == "" {
			again.Stop()
		}
		select {
		case <-more:
			again.Stop()
		case <-again.C:
		case <-s.ended:
			return fmt.Errorf("the server exited with code %d:\n%s", s.cmd.ProcessState.ExitCode(), s.Log())
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready: %w\n%s", context.Cause(ctx), s.Log())
		}
	}
}

func (s *Server) healthy(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/healthz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// URL returns the media API's URL, or "" if the server has not printed it yet.
func (s *Server) URL() string {
	found := address.FindStringSubmatch(s.printed.String())
	if found == nil {
		return ""
	}
	return found[1]
}

var inferenceAddress = regexp.MustCompile(`(?m)^\s*Inference\s+(http://\S+)$`)

// InferenceURL returns the gateway's URL, or "" if the server has not printed it yet.
func (s *Server) InferenceURL() string {
	found := inferenceAddress.FindStringSubmatch(s.printed.String())
	if found == nil {
		return ""
	}
	return found[1]
}

// Client returns a client with the development key.
func (s *Server) Client() *Client { return &Client{URL: s.URL(), Key: Key} }

func (s *Server) PID() int { return s.cmd.Process.Pid }

func (s *Server) Printed() string { return s.printed.String() }

func (s *Server) Log() string { return s.log.String() }

// Stop asks the server to stop, as a service manager would, and returns its exit code. If the
// context ends first, Stop kills the server.
func (s *Server) Stop(ctx context.Context) (exitCode int, err error) {
	return s.end(ctx, s.cmd.Process.Pid, syscall.SIGTERM)
}

// Interrupt is like Stop, but acts like Ctrl-C in a terminal: it sends SIGINT to the process group.
func (s *Server) Interrupt(ctx context.Context) (exitCode int, err error) {
	return s.end(ctx, -s.cmd.Process.Pid, syscall.SIGINT)
}

// Wait waits until the server exits and returns its exit code. If the context ends first, Wait kills the server.
func (s *Server) Wait(ctx context.Context) (exitCode int, err error) {
	select {
	case <-s.ended:
		return s.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		s.Kill()
		return 0, fmt.Errorf("the server did not exit: %w\n%s", context.Cause(ctx), s.Log())
	}
}

func (s *Server) end(ctx context.Context, target int, signal syscall.Signal) (int, error) {
	select {
	case <-s.ended:
	default:
		if err := syscall.Kill(target, signal); err != nil {
			return 0, fmt.Errorf("signal the server: %w", err)
		}
	}
	select {
	case <-s.ended:
		return s.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		s.Kill()
		return 0, fmt.Errorf("the server did not stop: %w\n%s", context.Cause(ctx), s.Log())
	}
}

// Kill sends SIGKILL to the server's process only, and waits until it has exited. If the server has
// already exited, Kill does nothing.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // fails if it has already exited
	<-s.ended
}
