// Package fault defines the only kind of error that crosses package boundaries.
//
// A fault has a code for programs and a message for the person who sent the request. All other
// errors are internal: they are logged, and the person gets a generic message.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Code classifies a fault. Transports map codes to HTTP statuses.
type Code string

const (
	// Internal is the code of every error that is not a fault.
	Internal Code = "internal"
	// Invalid means that the input breaks a rule of the contract.
	Invalid Code = "invalid"
	// Unauthorized means that the credential is missing, unknown, expired or revoked.
	Unauthorized Code = "unauthorized"
	// Forbidden means that the credential is valid but does not permit the call.
	Forbidden Code = "forbidden"
	// NotFound means that the resource does not exist for this account.
	NotFound Code = "not_found"
	// Conflict means that the state of the resource does not allow the operation.
	Conflict Code = "conflict"
	// TooLarge means that a transport limit was exceeded.
	TooLarge Code = "too_large"
	// UnsupportedCoding means that the request's body is compressed in an unsupported way.
	UnsupportedCoding Code = "unsupported_coding"
	// Limited means that the account has exceeded a limit of its tier, or that the service is
	// overloaded. RetryAfter is the time until a retry may succeed.
	Limited Code = "limited"
	// Exhausted means that too little of a budget is left in its current window.
	Exhausted   Code = "exhausted"
	StorageFull Code = "storage_full"
	// Unavailable means that a component of the service cannot be reached.
	Unavailable  Code = "unavailable"
	EngineFailed Code = "engine_failed"
	Timeout      Code = "timeout"
)

// Error is a fault. Callers see its message, so it must not contain a path, a key or the text of an internal error.
type Error struct {
	Code       Code
	Message    string
	RetryAfter time.Duration // zero means unspecified
	Err        error         // the cause, for the log only
}

func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

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

// CodeOf returns the code of the first fault in err's chain. It returns Internal if it finds no
// fault, and "" for nil.
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
