package ffmpeg

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"syscall"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
)

// checkTime bounds the search for the input that made a run fail.
const checkTime = time.Minute

// trouble matches a system error at the end of a line of messages that says
// that the system lacks something the program needs, or denies it its files.
// None of these is a property of an input.
var trouble = regexp.MustCompile(`(?m)(Too many open files|Too many open files in system|` +
	`Resource temporarily unavailable|Read-only file system|Permission denied|Operation not permitted|` +
	`Stale file handle|Transport endpoint is not connected|` +
	`Function not implemented|frame_thread_encoder_init failed|pthread_create\(?\)? failed.*)\s*$`)

// decoding matches a message in which a decoder says that it failed, by -1, which FFmpeg
// words as the system's error of that number. It is a property of the input.
var decoding = regexp.MustCompile(
	`(?m)^.*(?i:error while decoding|decoding error|packet to decoder).*: Operation not permitted\s*$`)

// explain returns the error to show the person who sent the file, for a failure
// whose reason is clear; nil for any other.
func explain(f *failure) *engine.Error {
	switch {
	case f.notRun:
		return &engine.Error{Code: job.EngineError, Message: "The engine cannot be started.", Retryable: true, Err: f}
	case f.says("No space left on device"), f.says("Disk quota exceeded"):
		// Another run would only fill the disk again, to the harm of others.
		return &engine.Error{Code: job.EngineError, Message: "The disk is full.", Err: f}
	case f.signal == syscall.SIGXFSZ, f.says("File too large"):
		return &engine.Error{Code: job.EngineError, Message: "The result is larger than the service allows.", Err: f}
	case f.overTime:
		return engine.InvalidInput(f, "The file takes too long to process: more than %.0f s of processor time.", f.most.Seconds())
	case f.signal == syscall.SIGKILL, f.signal == syscall.SIGTERM, f.signal == syscall.SIGINT:
		// By the system, for lack of memory, or by its operator.
		return &engine.Error{Code: job.EngineError, Message: "The engine was stopped.", Retryable: true, Err: f}
	case trouble.MatchString(decoding.ReplaceAllString(f.log, "")):
		return shortage(f)
	}
	return nil
}

// shortage returns the error of a machine that lacks resources.
func shortage(cause error) *engine.Error {
	return &engine.Error{
		Code: job.EngineError, Message: "The engine lacks what it needs to run.", Retryable: true, Err: cause,
	}
}

// says reports whether the program's messages contain the text.
func (f *failure) says(text string) bool { return strings.Contains(f.log, text) }

// explainRun returns the error to show the person when a command fails.
// FFmpeg's exit status does not say whether the input or the command is to
// blame, and its messages change from release to release; so the inputs are
// decoded without the rest of the command.
func (t *Tools) explainRun(ctx context.Context, inputs []Source, most time.Duration, err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	if known := explain(f); known != nil {
		return known
	}
	if f.lacksMemory() {
		return t.blame(ctx, f, "The file takes too much memory to process.")
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
			args:          append(append(t.globalArgs(), options...), "-map", "0:V:0", "-map", "0:a:0?", "-f", "null", "-"),
			inputs:        []string{input.Path},
			processorTime: most,
			maxFile:       1,
		})
		var undecodable *failure
		if errors.As(err, &undecodable) {
			if known := explain(undecodable); known != nil {
				return known
			}
			return t.blame(ctx, f, "The file cannot be decoded.")
		}
	}
	switch err := t.control(ctx, f.program, f.lacksMemory()); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return shortage(errors.Join(f, err))
	}
	return &engine.Error{Code: job.EngineError, Message: job.EngineFailedMessage, Err: f}
}

// lacksMemory reports whether the program was refused memory: because its own
// limits are below what its input asks for, or because the machine has none.
func (f *failure) lacksMemory() bool {
	return f.says("Cannot allocate memory") || f.says("cannot allocate memory")
}

// explainProbe returns the error to show the person when a probe fails: as the
// command is always the same, either the file is to blame or the machine.
func (t *Tools) explainProbe(ctx context.Context, err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	if known := explain(f); known != nil {
		return known
	}
	if f.lacksMemory() {
		return t.blame(ctx, f, "The file takes too much memory to process.")
	}
	return t.blame(ctx, f, "The file cannot be decoded.")
}

// blame returns the error of an input that cannot be edited, once it is certain
// that the machine could have: that the same program decodes a good picture,
// and, if it was refused memory, that the system would have provided everything
// it may have. A machine in trouble never costs a person the job.
func (t *Tools) blame(ctx context.Context, f *failure, message string) error {
	if t.trusting {
		return engine.InvalidInput(f, "%s", message)
	}
	silent := strings.TrimSpace(f.log) == "" // as for a profile that did not fit in memory
	switch err := t.control(ctx, f.program, silent || f.lacksMemory()); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return shortage(errors.Join(f, err))
	}
	return engine.InvalidInput(f, "%s", message)
}
