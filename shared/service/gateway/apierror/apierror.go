// Package apierror defines the errors that the gateway sends to callers, in the format of
// docs/contract/errors.md#gateway-errors.
package apierror

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/httpserver"
)

// Type is an error's category. Client libraries choose an exception by type and HTTP status.
type Type string

const (
	InvalidRequest Type = "invalid_request_error"
	Authentication Type = "authentication_error"
	Permission     Type = "permission_error"
	RateLimited    Type = "rate_limit_error"
	API            Type = "api_error"
	// OverBudget has the same value as the code InsufficientQuota, because clients expect it.
	OverBudget Type = InsufficientQuota
)

const (
	InvalidAPIKey      = "invalid_api_key"
	ModelNotFound      = "model_not_found"
	ModelNotAllowed    = "model_not_allowed"
	RouteNotAllowed    = "route_not_allowed"
	RateLimitExceeded  = "rate_limit_exceeded"
	InsufficientQuota  = "insufficient_quota"
	RequestTooLarge    = "request_too_large"
	UpstreamFailed     = "upstream_error"
	UpstreamTimeout    = "upstream_timeout"
	InternalError      = "internal_error"
	ServiceUnavailable = "service_unavailable"
	StorageFull        = "storage_full"
)

const (
	InvalidJSON      = "invalid_json"
	MissingParameter = "missing_required_parameter"
	InvalidType      = "invalid_type"
	InvalidValue     = "invalid_value"
	EmptyArray       = "empty_array"
	ArrayTooLong     = "array_above_max_length"
	BelowMinimum     = "decimal_below_min_value"
	AboveMaximum     = "decimal_above_max_value"
	IntegerTooSmall  = "integer_below_min_value"
	IntegerTooLarge  = "integer_above_max_value"
	UnknownParameter = "unknown_parameter"
	ContextExceeded  = "context_length_exceeded"
	ResponseNotFound = "previous_response_not_found"
)

// Error is an error for a caller of the gateway. Its text never contains a secret, a prompt or an
// internal error message.
type Error struct {
	Status int
	Type   Type
	Code   string
	// Param is the invalid field, such as messages[0].role, or empty.
	Param   string
	Message string
	// RetryAfter is the delay before a retry, or 0 if unspecified.
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Message }

// SetHeader sets the header fields that describe the error, except for WWW-Authenticate.
func (e *Error) SetHeader(header http.Header) {
	if e.RetryAfter > 0 {
		header.Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
	}
	if e.Type == OverBudget {
		// Clients that honor this header would otherwise retry within seconds.
		header.Set("X-Should-Retry", "false")
	}
	if e.Status == http.StatusUnsupportedMediaType {
		header.Set("Accept-Encoding", httpserver.AcceptedCodings)
	}
}

// errorBody is an error's JSON. All members are always present; empty ones are null.
type errorBody struct {
	Error struct {
		Message string  `json:"message"`
		Type    Type    `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	} `json:"error"`
}

func (e *Error) JSON() []byte {
	var body errorBody
	body.Error.Message, body.Error.Type = e.Message, e.Type
	if e.Param != "" {
		body.Error.Param = &e.Param
	}
	if e.Code != "" {
		body.Error.Code = &e.Code
	}
	// Marshaling strings cannot fail: invalid UTF-8 is replaced.
	text, _ := json.Marshal(body)
	return text
}

// shortageRetry is the Retry-After sent when the machine lacks a resource.
const shortageRetry = 10 * time.Second

// From converts err to an error for the caller. It returns an *Error unchanged and maps a fault by
// its code. A shortage becomes a 503, and any other error a 500 without details.
func From(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var f *fault.Error
	if !errors.As(err, &f) && fault.IsShortage(err) {
		return &Error{
			Status: http.StatusServiceUnavailable, Type: API, Code: ServiceUnavailable, RetryAfter: shortageRetry,
			Message: "The service is short of resources at the moment. Try again later.",
		}
	}
	if f == nil {
		return &Error{
			Status: http.StatusInternalServerError, Type: API, Code: InternalError,
			Message: "An internal error occurred in the gateway.",
		}
	}
	e = &Error{Message: f.Message, RetryAfter: f.RetryAfter}
	switch f.Code {
	case fault.Invalid:
		e.Status, e.Type = http.StatusBadRequest, InvalidRequest
	case fault.Unauthorized:
		e.Status, e.Type, e.Code = http.StatusUnauthorized, Authentication, InvalidAPIKey
	case fault.Forbidden:
		e.Status, e.Type = http.StatusForbidden, Permission
	case fault.NotFound:
		e.Status, e.Type = http.StatusNotFound, InvalidRequest
	case fault.Conflict:
		e.Status, e.Type = http.StatusConflict, InvalidRequest
	case fault.TooLarge:
		e.Status, e.Type, e.Code = http.StatusRequestEntityTooLarge, InvalidRequest, RequestTooLarge
	case fault.UnsupportedCoding:
		e.Status, e.Type = http.StatusUnsupportedMediaType, InvalidRequest
	case fault.Limited:
		e.Status, e.Type, e.Code = http.StatusTooManyRequests, RateLimited, RateLimitExceeded
	case fault.Exhausted:
		e.Status, e.Type, e.Code = http.StatusTooManyRequests, OverBudget, InsufficientQuota
	case fault.Unavailable:
		e.Status, e.Type, e.Code = http.StatusServiceUnavailable, API, ServiceUnavailable
	case fault.StorageFull:
		e.Status, e.Type, e.Code = http.StatusInsufficientStorage, API, StorageFull
	case fault.EngineFailed:
		e.Status, e.Type, e.Code = http.StatusBadGateway, API, UpstreamFailed
	case fault.Timeout:
		e.Status, e.Type, e.Code = http.StatusGatewayTimeout, API, UpstreamTimeout
	default:
		e.Status, e.Type, e.Code = http.StatusInternalServerError, API, InternalError
	}
	return e
}

func Invalid(param, code, format string, args ...any) *Error {
	return &Error{
		Status: http.StatusBadRequest, Type: InvalidRequest, Code: code, Param: param,
		Message: fmt.Sprintf(format, args...),
	}
}

// UnknownModel returns the error for a model that is unknown, is a placeholder or does not support the route.
func UnknownModel(format string, args ...any) *Error {
	return &Error{
		Status: http.StatusNotFound, Type: InvalidRequest, Code: ModelNotFound, Param: "model",
		Message: fmt.Sprintf(format, args...),
	}
}
