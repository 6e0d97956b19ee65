package apierror_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/service/gateway/apierror"
)

func TestErrorsHaveTheContractFormat(t *testing.T) {
	for _, c := range []struct {
		problem apierror.Error
		want    string
	}{
		{apierror.Error{Type: apierror.InvalidRequest, Code: apierror.InvalidType, Param: "stop", Message: `no "stop"`},
			`{"error":{"message":"no \"stop\"","type":"invalid_request_error","param":"stop","code":"invalid_type"}}`},
		{apierror.Error{Type: apierror.API, Code: apierror.UpstreamFailed, Message: "m"},
			`{"error":{"message":"m","type":"api_error","param":null,"code":"upstream_error"}}`},
		{apierror.Error{Type: apierror.InvalidRequest, Message: "\xff"},
			`{"error":{"message":"\ufffd","type":"invalid_request_error","param":null,"code":null}}`},
	} {
		if got := string(c.problem.JSON()); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestFaultsBecomeErrors(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		kind   apierror.Type
		code   string
	}{
		{fault.New(fault.Unauthorized, "m"), 401, apierror.Authentication, "invalid_api_key"},
		{fault.New(fault.Forbidden, "m"), 403, apierror.Permission, ""},
		{fault.New(fault.Invalid, "m"), 400, apierror.InvalidRequest, ""},
		{fault.New(fault.NotFound, "m"), 404, apierror.InvalidRequest, ""},
		{fault.New(fault.TooLarge, "m"), 413, apierror.InvalidRequest, "request_too_large"},
		{fault.New(fault.Limited, "m"), 429, apierror.RateLimited, "rate_limit_exceeded"},
		{fault.New(fault.Exhausted, "m"), 429, apierror.OverBudget, "insufficient_quota"},
		{fault.New(fault.Unavailable, "m"), 503, apierror.API, "service_unavailable"},
		{fault.New(fault.EngineFailed, "m"), 502, apierror.API, "upstream_error"},
		{fault.New(fault.Timeout, "m"), 504, apierror.API, "upstream_timeout"},
		{fmt.Errorf("around: %w", fault.New(fault.Limited, "m")), 429, apierror.RateLimited, "rate_limit_exceeded"},
		{fmt.Errorf("around: %w", &apierror.Error{Status: 418, Message: "m"}), 418, "", ""},
	} {
		got := apierror.From(c.err)
		if got.Status != c.status || got.Type != c.kind || got.Code != c.code || got.Message != "m" {
			t.Errorf("%v: got %+v", c.err, got)
		}
	}
	if got := apierror.From(&fault.Error{Code: fault.Limited, RetryAfter: time.Second}); got.RetryAfter != time.Second {
		t.Errorf("RetryAfter is lost: %+v", got)
	}
	// Only a fault's message is shown to callers.
	got := apierror.From(errors.New("open /secret/path"))
	if got.Status != 500 || got.Type != apierror.API || got.Code != "internal_error" ||
		got.Message != "An internal error occurred in the gateway." {
		t.Errorf("got %+v", got)
	}
}

// Running out of file descriptors is not a bug in the gateway.
func TestShortagesAreUnavailable(t *testing.T) {
	for _, shortage := range []error{syscall.EMFILE, syscall.ENFILE} {
		if e := apierror.From(fmt.Errorf("open: %w", shortage)); e.Status != 503 || e.RetryAfter == 0 {
			t.Errorf("%v: %d, retry after %s", shortage, e.Status, e.RetryAfter)
		}
	}
}
