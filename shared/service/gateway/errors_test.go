package gateway_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/service/gateway"
)

func TestErrorBodies(t *testing.T) {
	for _, c := range []struct {
		problem gateway.Error
		want    string
	}{
		{gateway.Error{Type: gateway.InvalidRequest, Code: gateway.InvalidType, Param: "stop", Message: `no "stop"`},
			`{"error":{"message":"no \"stop\"","type":"invalid_request_error","param":"stop","code":"invalid_type"}}`},
		{gateway.Error{Type: gateway.API, Code: gateway.UpstreamFailed, Message: "m"},
			`{"error":{"message":"m","type":"api_error","param":null,"code":"upstream_error"}}`},
		{gateway.Error{Type: gateway.InvalidRequest, Message: "\xff"},
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
		kind   gateway.Type
		code   string
	}{
		{fault.New(fault.Unauthorized, "m"), 401, gateway.Authentication, "invalid_api_key"},
		{fault.New(fault.Forbidden, "m"), 403, gateway.Permission, ""},
		{fault.New(fault.Invalid, "m"), 400, gateway.InvalidRequest, ""},
		{fault.New(fault.NotFound, "m"), 404, gateway.InvalidRequest, ""},
		{fault.New(fault.TooLarge, "m"), 413, gateway.InvalidRequest, "request_too_large"},
		{fault.New(fault.Limited, "m"), 429, gateway.RateLimited, "rate_limit_exceeded"},
		{fault.New(fault.Unavailable, "m"), 503, gateway.API, "service_unavailable"},
		{fault.New(fault.EngineFailed, "m"), 502, gateway.API, "upstream_error"},
		{fault.New(fault.Timeout, "m"), 504, gateway.API, "upstream_timeout"},
		{fmt.Errorf("around: %w", fault.New(fault.Limited, "m")), 429, gateway.RateLimited, "rate_limit_exceeded"},
		{fmt.Errorf("around: %w", &gateway.Error{Status: 418, Message: "m"}), 418, "", ""},
	} {
		got := gateway.ErrorOf(c.err)
		if got.Status != c.status || got.Type != c.kind || got.Code != c.code || got.Message != "m" {
			t.Errorf("%v: got %+v", c.err, got)
		}
	}
	if got := gateway.ErrorOf(&fault.Error{Code: fault.Limited, RetryAfter: time.Second}); got.RetryAfter != time.Second {
		t.Errorf("the time to wait is lost: %+v", got)
	}
	// Only faults are shown.
	got := gateway.ErrorOf(errors.New("open /secret/path"))
	if got.Status != 500 || got.Type != gateway.API || got.Code != "internal_error" ||
		got.Message != "Something went wrong inside the gateway." {
		t.Errorf("got %+v", got)
	}
}
