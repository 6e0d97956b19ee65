package ffmpeg

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
)

// checkTime bounds the search for the input that made a run fail.
const checkTime = time.Minute

// explain gives the error that the person who sent the file is to see of a
// failure whose reason is plain, and nil of another.
func explain(f *failure) *engine.Error {
	switch {
	case f.says("No space left on device"), f.says("Disk quota exceeded"):
		// Another run would only fill the disk again, to the harm of others.
		return &engine.Error{Code: job.EngineError, Message: "The disk is full.", Err: f}
	case f.signal == syscall.SIGXFSZ, f.says("File too large"):
		return &engine.Error{Code: job.EngineError, Message: "The result is larger than the service allows.", Err: f}
	case f.overTime:
		return engine.InvalidInput(f, "The file takes too long to process.")
	case f.signal == syscall.SIGKILL, f.signal == syscall.SIGTERM, f.signal == syscall.SIGINT:
		// By the system, for want of memory, or by its operator.
		return &engine.Error{Code: job.EngineError, Message: "The engine was stopped.", Retryable: true, Err: f}
	case f.notRun:
		return &engine.Error{Code: job.EngineError, Message: "The engine cannot be started.", Retryable: true, Err: f}
	case f.says("Cannot allocate memory"), f.says("cannot allocate memory"):
		return engine.InvalidInput(f, "The file takes too much memory to process.")
	}
	return nil
}

// says reports whether the program's messages contain the text.
func (f *failure) says(text string) bool { return strings.Contains(f.log, text) }

// explainRun gives the error that the person is to see when a command fails.
// FFmpeg's exit status does not tell whether the input or the command is to
// blame, and its messages change from release to release; so the inputs are
// decoded without the rest of the command.
func (t *Tools) explainRun(ctx context.Context, inputs []Source, err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	if known := explain(f); known != nil {
		return known
	}
	within, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	for _, input := range inputs {
		options, err := t.inputArgs(input)
		if err != nil {
			return err
		}
		err = t.run(within, process{
			program:       t.ffmpeg,
			args:          append(append(t.globalArgs(), options...), "-map", "0:V:0", "-f", "null", "-"),
			processorTime: t.bounds.runTime,
			maxFile:       1,
		})
		var undecodable *failure
		if errors.As(err, &undecodable) {
			return engine.InvalidInput(f, "The file cannot be decoded.")
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &engine.Error{Code: job.EngineError, Message: "The engine failed.", Err: f}
}

// explainProbe gives the error that the person is to see when a probe fails: as
// the command is always the same, the file is to blame.
func explainProbe(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	if known := explain(f); known != nil {
		return known
	}
	return engine.InvalidInput(f, "The file cannot be decoded.")
}
