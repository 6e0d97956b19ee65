package vp8

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"cutroom/shared/platform/sandbox"
	"cutroom/shared/platform/vp8/helper"
)

const (
	// The address space for frames, in bytes. A stream of the largest frames uses a quarter of it.
	spareSpace = 512 << 20
	// Enough CPU time for hours of live video. After that, a new helper continues from a key frame.
	processorTime = time.Hour
	startTime     = 20 * time.Second
	// After a helper has exited, its pipes may stay open for drainTime.
	drainTime = 5 * time.Second
)

type process struct {
	frameTime time.Duration
	shared    []byte
	in        *os.File // for requests
	out       *os.File // for responses
	cmd       *exec.Cmd
	log       sandbox.Log
	// ended is closed once the process has exited. reason says how it exited. cause says why the
	// server ended it, if it did.
	ended  chan struct{}
	reason string

	mu    sync.Mutex
	cause error
}

func (l *Library) start() (*process, error) {
	memory, shared, err := newShared(helper.SharedSize)
	if err != nil {
		return nil, fmt.Errorf("vp8: create shared memory: %w", err)
	}
	defer memory.Close()
	h := &process{frameTime: l.FrameTime, shared: shared, ended: make(chan struct{})}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, release(shared))
	}
	defer theirIn.Close()
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close(), release(shared))
	}
	defer theirOut.Close()
	h.in, h.out = in, out
	started := make(chan error)
	go h.run(l, memory, theirIn, theirOut, started)
	if err := <-started; err != nil {
		h.in.Close()
		h.out.Close()
		return nil, errors.Join(err, release(shared))
	}
	return h, nil
}

func (h *process) run(l *Library, memory, in, out *os.File, started chan<- error) {
	// The process dies with the thread that started it: see [sandbox.Sandbox.Command].
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, start, err := l.box.Command(context.Background(), sandbox.Plan{
		Program: l.self, Args: []string{helper.Name, l.found.Path}, Inputs: l.found.Files,
		Extra: []*os.File{memory}, Memory: l.found.Memory(spareSpace), ProcessorTime: processorTime,
	})
	if err != nil {
		started <- err
		return
	}
	cmd.Env = environment()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &h.log
	cmd.WaitDelay = drainTime
	if err := cmd.Start(); err != nil {
		start.Ended()
		started <- err
		return
	}
	h.cmd = cmd
	started <- nil
	err = cmd.Wait()
	ran, why := start.Ended()
	switch {
	case !ran:
		h.reason = "the helper was not started: " + why
	case err != nil:
		h.reason = err.Error()
	default:
		h.reason = "it ended"
	}
	close(h.ended)
}

func (h *process) ask(ctx context.Context, order helper.Request) (answer helper.Answer, err error) {
	limit := h.frameTime
	if order.Do == helper.DoNothing {
		limit = startTime
	}
	until := time.Now().Add(limit)
	// A compromised helper might not read its requests, so writing needs a deadline too.
	if err := errors.Join(h.in.SetWriteDeadline(until), h.out.SetReadDeadline(until)); err != nil {
		return answer, err
	}
	stop := context.AfterFunc(ctx, func() { _ = h.out.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var buffer [max(helper.RequestSize, helper.AnswerSize)]byte
	if _, err := binary.Encode(buffer[:], binary.LittleEndian, order); err != nil {
		return answer, err
	}
	if _, err = h.in.Write(buffer[:helper.RequestSize]); err == nil {
		_, err = io.ReadFull(h.out, buffer[:helper.AnswerSize])
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		h.mu.Lock()
		h.cause = errors.New("the helper took too long")
		h.mu.Unlock()
	}
	if err != nil {
		return answer, err
	}
	_, err = binary.Decode(buffer[:helper.AnswerSize], binary.LittleEndian, &answer)
	return answer, err
}

// Killing one process is enough, because it cannot have started others.
func (h *process) kill() {
	_ = h.cmd.Process.Kill() // fails if the helper has exited
}

// end ends the process and frees its resources. After that, no method except why may be called.
func (h *process) end() {
	h.in.Close()
	h.kill()
	<-h.ended
	h.out.Close()
	_ = release(h.shared)
	h.shared = nil
}

func (h *process) why() string {
	<-h.ended
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause != nil {
		return h.cause.Error()
	}
	if said := h.log.String(); said != "" {
		return h.reason + ": " + said
	}
	return h.reason
}
