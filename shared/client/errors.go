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

// Error is the answer of a service that refuses a call.
type Error struct {
	Status int
	// Code is the gateway's error code, such as "model_not_found", and Type its error
	// type; both are "" for the media service.
	Code, Type string
	// Message is for people.
	Message string
	// Fields lists the request's invalid fields (status 422).
	Fields []FieldError
	// RequestID identifies the call in the service's log.
	RequestID string
	// RetryAfter is how long the service asks callers to wait; 0 if it does not.
	RetryAfter time.Duration
}

// FieldError is one item of a validation error body (docs/contract/errors.md#validation-errors).
type FieldError struct {
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
	Type string   `json:"type"`
}

// Error returns the service's message, or the status if it sent no message.
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
	// The prefix that pydantic puts before a rule's message says nothing to people.
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

// refusalOf reads a refusal: {"detail": …} of the media service, or {"error": {…}} of the gateway. A
// proxy may answer with anything else; then only the status counts.
func refusalOf(response *http.Response) *Error {
	const most = 64 << 10
	refusal := &Error{
		Status: response.StatusCode, RequestID: response.Header.Get("x-request-id"),
		RetryAfter: retryAfter(response.Header.Get("Retry-After")),
	}
	if response.StatusCode < http.StatusBadRequest {
		// The body of an answer that switches protocols is a connection, whose end no
		// context brings about. No other one says why.
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
		_ = json.Unmarshal(shape.Detail, &refusal.Fields) // any other shape is ignored
	}
	return refusal
}

// retryAfter reads the Retry-After header in seconds; 0 if it has another form.
func retryAfter(value string) time.Duration {
	seconds, err := strconv.Atoi(value)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// ConnectionError means that the service could not be reached, or that the
// connection broke before the end of the answer.
type ConnectionError struct {
	// URL is the service's scheme and host.
	URL string
	Err error
}

// Error names the service and the cause.
func (e *ConnectionError) Error() string {
	cause := e.Err
	// net/http adds the whole URL of the call, which is left out.
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

// connectionError makes a *ConnectionError of errors that are the connection's, and returns all others
// unchanged.
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
