// Package fault defines the only kind of error that crosses package boundaries.
//
// A fault has a code for programs and a message for the person who sent the request. Every other
// error is internal: it is logged, and the person only gets a general message.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Code is the kind of a fault. Transports map codes to HTTP statuses.
type Code string

const (
	// Internal is the code of every error that is not a fault.
	Internal Code = "internal"
	// Invalid means that the input breaks a rule of the contract.
	Invalid Code = "invalid"
	// Unauthorized means that the credential is missing, unknown, expired or revoked.
	Unauthorized Code = "unauthorized"
	// Forbidden means that the credential is valid but not sufficient.
	Forbidden Code = "forbidden"
	// NotFound means that the resource does not exist for this account.
	NotFound Code = "not_found"
	// Conflict means that the state of the resource does not allow the operation.
	Conflict Code = "conflict"
	// TooLarge means that a transport limit was exceeded.
	TooLarge Code = "too_large"
	// Limited means that the account has exceeded a limit of its tier, or that the service has
	// more work than it can finish in time. RetryAfter is the time until a retry may succeed.
	Limited Code = "limited"
	// Exhausted means that too little of a budget remains. RetryAfter is the time until its next
	// window starts.
	Exhausted   Code = "exhausted"
	StorageFull Code = "storage_full"
	// Unavailable means that a part of the service is unreachable.
	Unavailable  Code = "unavailable"
	EngineFailed Code = "engine_failed"
	// Timeout means that the work did not finish in time.
	Timeout Code = "timeout"
)

// Error is a fault. The caller sees its message, so it must not contain a path, a key or the text
// of an internal error.
type Error struct {
	Code    Code
	Message string
	// RetryAfter is the time to wait before a retry. Zero means unspecified.
	RetryAfter time.Duration
	// Err is the cause, for the log only.
	Err error
}

// New returns a fault with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns a fault that keeps its cause for the log.
func Wrap(err error, code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Err)
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first fault in err's chain, Internal if there is none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

func Is(err error, code Code) bool { return CodeOf(err) == code }
