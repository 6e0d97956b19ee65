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

// Error is an answer that refuses, from either service.
type Error struct {
	// Status is the answer's HTTP status.
	Status int
	// Code is the gateway's error code, such as "model_not_found", or ""; Type is
	// the gateway's error type.
	Code, Type string
	// Message is for people.
	Message string
	// Fields is what was wrong with the request, field by field (status 422).
	Fields []FieldError
	// RequestID finds the call in the service's log.
	RequestID string
	// RetryAfter is how long the service asks to wait, 0 where it does not.
	RetryAfter time.Duration
}

// FieldError is one item of a validation error body
// (docs/contract/errors.md#validation-errors).
type FieldError struct {
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
	Type string   `json:"type"`
}

// Error says what the service said, without the status where there is more.
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
	return fmt.Sprintf("the server answered with status %d %s", e.Status, http.StatusText(e.Status))
}

// String says which field is wrong and how.
func (f FieldError) String() string {
	// What pydantic puts before the words of a rule says nothing to people.
	message := strings.TrimPrefix(f.Msg, "Value error, ")
	if len(f.Loc) < 2 {
		return message
	}
	return strings.Join(f.Loc[1:], ".") + ": " + message
}

// IsStatus reports whether the error is an answer with the status.
func IsStatus(err error, status int) bool {
	var refusal *Error
	return errors.As(err, &refusal) && refusal.Status == status
}

// refusalOf reads an answer that refuses: {"detail": …} of the media service, or
// {"error": {…}} of the gateway. Something in between, a proxy say, has shapes of
// its own: then the status alone counts.
func refusalOf(response *http.Response) *Error {
	const most = 64 << 10
	refusal := &Error{
		Status: response.StatusCode, RequestID: response.Header.Get("x-request-id"),
		RetryAfter: retryAfter(response.Header.Get("Retry-After")),
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
		_ = json.Unmarshal(shape.Detail, &refusal.Fields) // of another shape it tells nothing
	}
	return refusal
}

// retryAfter reads the header of that name, in its form of seconds.
func retryAfter(value string) time.Duration {
	seconds, err := strconv.Atoi(value)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// ConnectionError means that the service was not reached, or left before the
// answer's end.
type ConnectionError struct {
	// URL is the service's address, without the rest of the call.
	URL string
	Err error
}

// Error says which service and why.
func (e *ConnectionError) Error() string {
	cause := e.Err
	// What net/http adds is the call's whole URL again.
	var call *url.Error
	if errors.As(cause, &call) {
		cause = call.Err
	}
	return fmt.Sprintf("no connection to %s: %v", e.URL, cause)
}

// Unwrap gives the cause.
func (e *ConnectionError) Unwrap() error { return e.Err }

// sourceError is trouble with what was to be sent, which is not the connection's.
type sourceError struct{ error }

func (e *sourceError) Unwrap() error { return e.error }

// connectionError tells trouble on the way from the caller's own.
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
