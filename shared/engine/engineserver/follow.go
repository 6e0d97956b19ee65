package engineserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
)

// maxLine limits a line, in bytes. The longest lines hold a preview in base64.
const maxLine = 2 * engine.MaxPreview

// follow reads a server's response to the end and reports progress. It calls `alive` for every line. Errors:
// [*engine.Error].
func follow(response *http.Response, alive func(), progress func(engine.Progress)) (Result, error) {
	if response.StatusCode != http.StatusOK {
		return Result{}, refusal(response)
	}
	lines := bufio.NewReaderSize(response.Body, maxLine)
	for {
		text, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return Result{}, garbled(fmt.Errorf("a line is longer than %d bytes", maxLine))
		}
		if err != nil {
			// If the last line has no newline, it is truncated.
			return Result{}, fmt.Errorf("engineserver: read the response: %w", err)
		}
		alive()
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		line, err := parse(text)
		switch {
		case err != nil:
			return Result{}, err
		case line.Error != nil:
			return Result{}, line.Error.asError()
		case line.Result != nil:
			return *line.Result, nil
		case line.Progress != nil:
			progress(engine.Progress{
				Fraction: min(max(*line.Progress, 0), 1), Stage: line.Stage, Preview: line.Preview,
			})
		}
	}
}

// refusal returns the error for a run that was not started. It uses the error line in the response if there is one.
func refusal(response *http.Response) error {
	cause := fmt.Errorf("engineserver: the engine server returned status %d", response.StatusCode)
	// Read only the bodies of errors. After a protocol switch, the body is a connection that the context cannot end.
	var body []byte
	if response.StatusCode >= http.StatusBadRequest {
		body, _ = io.ReadAll(io.LimitReader(response.Body, maxLine)) // a truncated body does not parse
	}
	if len(body) > 0 {
		if line, err := parse(body); err == nil && line.Error != nil {
			failure := line.Error.asError()
			failure.Err = errors.Join(cause, failure.Err)
			return failure
		}
	}
	// A rejection is permanent unless it is due to a server failure.
	return &engine.Error{
		Code: job.EngineError, Message: "The engine rejected the edit.", Retryable: response.StatusCode >= 500,
		Err: cause,
	}
}
