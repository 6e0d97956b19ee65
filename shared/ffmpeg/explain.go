package ffmpeg

import (
	"errors"
	"strings"
	"syscall"

	"cutroom/shared/engine"
	"cutroom/shared/job"
)

// blames are what FFmpeg says when an input is at fault. Its exit status does
// not tell.
var blames = []string{
	"Invalid data found",
	"Error while decoding",
	"Error opening input",
	"Empty output",
	"Output file is empty",
	"matches no streams",
	"does not contain any stream",
	"Picture size",
	"Protocol",
	"not on whitelist",
	"Decoder (codec",
	"Unsupported codec",
	"moov atom not found",
	"Could not find codec parameters",
}

// explain turns the failure of a program into the error that the person who
// sent the file is to see; other errors stay as they are.
func explain(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	switch {
	case strings.Contains(f.log, "No space left on device"), strings.Contains(f.log, "Disk quota exceeded"):
		// Another run would only fill the disk again, to the harm of others.
		return &engine.Error{Code: job.EngineError, Message: "The disk is full.", Err: err}
	case f.signal == syscall.SIGXFSZ, strings.Contains(f.log, "File too large"):
		return &engine.Error{Code: job.EngineError, Message: "The result is larger than the service allows.", Err: err}
	case f.overTime:
		return engine.InvalidInput(err, "The file takes too long to decode.")
	case f.signal == syscall.SIGKILL, f.signal == syscall.SIGTERM, f.signal == syscall.SIGINT:
		// By the system, for want of memory, or by its operator.
		return &engine.Error{Code: job.EngineError, Message: "The engine was stopped.", Retryable: true, Err: err}
	case strings.Contains(f.log, "Cannot allocate memory"):
		return engine.InvalidInput(err, "The file takes too much memory to decode.")
	case f.signal != 0:
		// Inputs that crash a decoder crash it again.
		return engine.InvalidInput(err, "The file cannot be decoded.")
	}
	for _, blame := range blames {
		if strings.Contains(f.log, blame) {
			return engine.InvalidInput(err, "The file cannot be decoded.")
		}
	}
	return &engine.Error{Code: job.EngineError, Message: "The engine failed.", Err: err}
}
