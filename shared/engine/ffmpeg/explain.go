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

// checkTime limits the search for the input that made a run fail.
const checkTime = time.Minute

// trouble matches, at the end of a line, system errors that report a resource shortage or denied file access. An
// input cannot cause these errors.
var trouble = regexp.MustCompile(`(?m)(Too many open files|Too many open files in system|` +
	`Resource temporarily unavailable|Read-only file system|Permission denied|Operation not permitted|` +
	`Stale file handle|Transport endpoint is not connected|` +
	`Function not implemented|frame_thread_encoder_init failed|pthread_create\(?\)? failed.*)\s*$`)

// FFmpeg reports a decoder's return value -1 as system error 1, "Operation not permitted". In this case the input is
// at fault.
var decoding = regexp.MustCompile(
	`(?m)^.*(?i:error while decoding|decoding error|packet to decoder).*: Operation not permitted\s*$`)

func explain(f *failure) *engine.Error {
	switch {
	case f.notRun:
		return &engine.Error{Code: job.EngineError, Message: "The engine cannot be started.", Retryable: true, Err: f}
	case f.says("No space left on device"), f.says("Disk quota exceeded"):
		// A retry would only fill the disk again.
		return &engine.Error{Code: job.EngineError, Message: "The disk is full.", Err: f}
	case f.signal == syscall.SIGXFSZ, f.says("File too large"):
		return &engine.Error{Code: job.EngineError, Message: "The result is larger than the service allows.", Err: f}
	case f.overTime:
		return engine.InvalidInput(f, "The file takes too long to process: more than %.0f s of CPU time.", f.most.Seconds())
	case f.signal == syscall.SIGKILL, f.signal == syscall.SIGTERM, f.signal == syscall.SIGINT:
		// The system killed the program because memory ran out, or an operator killed it.
		return &engine.Error{Code: job.EngineError, Message: "The engine was stopped.", Retryable: true, Err: f}
	case trouble.MatchString(decoding.ReplaceAllString(f.log, "")):
		return shortage(f)
	}
	return nil
}

func shortage(cause error) *engine.Error {
	return &engine.Error{
		Code: job.EngineError, Message: "The engine lacks resources that it needs.", Retryable: true, Err: cause,
	}
}

func (f *failure) says(text string) bool { return strings.Contains(f.log, text) }

// explainRun finds the cause of a failed run by decoding the inputs without the rest of the
// command. FFmpeg's exit status does not show the cause, and its messages change between releases.
func (t *Tools) explainRun(ctx context.Context, inputs []Source, most time.Duration, err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	if known := explain(f); known != nil {
		return known
	}
	if f.lacksMemory() {
		return t.inputError(ctx, f, "The file takes too much memory to process.")
	}
	within, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	for _, input := range inputs {
		options, err := t.inputArgs(input)
		if err != nil {
			return err
		}
		err = t.run(within, process{
			program: t.ffmpeg,
			args: append(append(t.globalArgs(), options...),
				"-map", "0:"+input.PictureTrack(), "-map", "0:"+input.SoundTrack()+"?", "-f", "null", "-"),
			inputs:        []string{input.Path},
			processorTime: most,
			maxFile:       1,
		})
		var undecodable *failure
		if errors.As(err, &undecodable) {
			if known := explain(undecodable); known != nil {
				return known
			}
			return t.inputError(ctx, f, "The file cannot be decoded.")
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

// lacksMemory reports whether memory ran out: either the program's limit is too low for its input, or the machine has
// too little.
func (f *failure) lacksMemory() bool {
	return f.says("Cannot allocate memory") || f.says("cannot allocate memory") || f.says("malloc of size") ||
		f.says("Error marking filters as finished") // the last frame lasts so long that its copies fill the memory
}

// A probe's command is always the same, so either the file or the machine is at fault.
func (t *Tools) explainProbe(ctx context.Context, err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	if known := explain(f); known != nil {
		return known
	}
	if f.lacksMemory() {
		return t.inputError(ctx, f, "The file takes too much memory to process.")
	}
	return t.inputError(ctx, f, "The file cannot be decoded.")
}

// inputError blames the input for the failure, but only if the machine is healthy. To show this, the same program
// must decode a known good picture. If memory may have run out, the system must also be able to provide the memory
// that the limit allows.
func (t *Tools) inputError(ctx context.Context, f *failure, message string) error {
	if t.skipControl {
		return engine.InvalidInput(f, "%s", message)
	}
	silent := strings.TrimSpace(f.log) == "" // for example because a profile did not fit in memory
	switch err := t.control(ctx, f.program, silent || f.lacksMemory()); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return shortage(errors.Join(f, err))
	}
	return engine.InvalidInput(f, "%s", message)
}
