package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

type Error struct {
	Status int
	// Code is the gateway's error code, such as "model_not_found". Type is its error type. Both are
	// "" if the error comes from the media service.
	Code, Type string
	Message    string
	Fields     []FieldError
	RequestID  string
	// RetryAfter is the pause that the service asks for, or 0.
	RetryAfter time.Duration
}

// See docs/contract/errors.md#validation-errors.
type FieldError struct {
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
	Type string   `json:"type"`
}

// Error returns the service's message or, if it is empty, the status.
func (e *Error) Error() string {
	if len(e.Fields) > 0 {
		said := make([]string, len(e.Fields))
		for i, field := range e.Fields {
			said[i] = field.String()
		}
		return strings.Join(said, "; ")
	}
	if e.Message != "" {
		return e.Message
	}
	return fmt.Sprintf("the server returned status %d %s", e.Status, http.StatusText(e.Status))
}

func (f FieldError) String() string {
	// The prefix comes from pydantic and means nothing to users.
	message := strings.TrimPrefix(f.Msg, "Value error, ")
	if len(f.Loc) < 2 {
		return message
	}
	return strings.Join(f.Loc[1:], ".") + ": " + message
}

func IsStatus(err error, status int) bool {
	var refusal *Error
	return errors.As(err, &refusal) && refusal.Status == status
}

// refusalOf parses {"detail": …} from the media service or {"error": {…}} from the gateway. For any
// other body, such as a proxy's, it uses only the status.
func refusalOf(response *http.Response) *Error {
	const most = 64 << 10
	refusal := &Error{
		Status: response.StatusCode, RequestID: response.Header.Get("x-request-id"),
		RetryAfter: retryAfter(response.Header.Get("Retry-After")),
	}
	if response.StatusCode < http.StatusBadRequest {
		// Do not read these bodies: they do not explain the error, and after a protocol switch the
		// body is a connection that the context does not close.
		return refusal
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return refusal
	}
	var shape struct {
		Detail json.RawMessage `json:"detail"`
		Error  struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Code    *string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(content, &shape) != nil {
		return refusal
	}
	refusal.Message, refusal.Type = shape.Error.Message, shape.Error.Type
	if shape.Error.Code != nil {
		refusal.Code = *shape.Error.Code
	}
	if json.Unmarshal(shape.Detail, &refusal.Message) != nil {
		_ = json.Unmarshal(shape.Detail, &refusal.Fields) // other formats are ignored
	}
	return refusal
}

// retryAfter parses a number of seconds. It returns 0 for other formats.
func retryAfter(value string) time.Duration {
	seconds, err := strconv.Atoi(value)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// ConnectionError means that the service could not be reached, or that the connection broke before
// the call was complete.
type ConnectionError struct {
	URL string
	Err error
}

func (e *ConnectionError) Error() string {
	cause := e.Err
	// Omit the full URL of the call, which net/http adds.
	var call *url.Error
	if errors.As(cause, &call) {
		cause = call.Err
	}
	return fmt.Sprintf("no connection to %s: %v", e.URL, cause)
}

func (e *ConnectionError) Unwrap() error { return e.Err }

// sourceError is an error from reading the request's content, as opposed to a connection error.
type sourceError struct{ error }

func (e *sourceError) Unwrap() error { return e.error }

func connectionError(ctx context.Context, address string, err error) error {
	var refusal *Error
	var source *sourceError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &refusal):
		return err
	case errors.As(err, &source):
		return source.error
	}
	if parsed, parseErr := url.Parse(address); parseErr == nil {
		address = parsed.Scheme + "://" + parsed.Host
	}
	return &ConnectionError{address, err}
}
