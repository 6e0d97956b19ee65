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
	// Code is the gateway's error code, such as "model_not_found". Type is its error type. Both
	// are "" for the media service.
	Code, Type string
	Message    string
	Fields     []FieldError
	RequestID  string
	// RetryAfter is the pause that the service asks for, or 0.
	RetryAfter time.Duration
}

// docs/contract/errors.md#validation-errors
type FieldError struct {
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
	Type string   `json:"type"`
}

// Error returns the message of the service, or the status without one.
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
	// The prefix is pydantic's and means nothing to users.
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

// refusalOf parses {"detail": …} of the media service, or {"error": {…}} of the gateway. From any
// other body, such as a proxy's, only the status is used.
func refusalOf(response *http.Response) *Error {
	const most = 64 << 10
	refusal := &Error{
		Status: response.StatusCode, RequestID: response.Header.Get("x-request-id"),
		RetryAfter: retryAfter(response.Header.Get("Retry-After")),
	}
	if response.StatusCode < http.StatusBadRequest {
		// The body of a protocol switch is a connection, which a context does not close. The
		// bodies of other responses below 400 do not explain the error.
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

// retryAfter parses seconds. It returns 0 for other formats.
func retryAfter(value string) time.Duration {
	seconds, err := strconv.Atoi(value)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// ConnectionError means that the service was not reached, or the connection broke too early.
type ConnectionError struct {
	URL string
	Err error
}

func (e *ConnectionError) Error() string {
	cause := e.Err
	// Omit the complete URL of the call, which net/http adds.
	var call *url.Error
	if errors.As(cause, &call) {
		cause = call.Err
	}
	return fmt.Sprintf("no connection to %s: %v", e.URL, cause)
}

func (e *ConnectionError) Unwrap() error { return e.Err }

// sourceError is an error of reading the request's content, not of the connection.
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
