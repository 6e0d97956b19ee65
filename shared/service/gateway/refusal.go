package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
	"cutroom/shared/service/gateway/upstream"
)

const (
	maxRefusal  = 64 << 10
	refusalTime = 5 * time.Second
	maxMessage  = 4 << 10
	// maxRetryAfter caps an upstream's Retry-After. Few limits last longer than an hour.
	maxRetryAfter = time.Hour
)

// refused returns the failure for an upstream status other than 200.
//
// If the upstream rejected the request as invalid, the rejection is forwarded. A 429 is forwarded
// unless another upstream accepts the call. If the upstream is busy or broken, another one is
// tried. Other failures, such as an unknown key or model, are configuration errors of this service.
func refused(r upstream.Reply, secret string) *failure {
	body := readRefusal(r.Body)
	f := &failure{apiErr: upstreamFailed(), outcome: Failed, cause: fmt.Errorf("the upstream responded with status %d", r.Status)}
	retryAfter := retryDelay(r)
	switch r.Status {
	case http.StatusTooManyRequests:
		f.outcome, f.tryNext, f.quick, f.retryAfter = Overloaded, true, true, max(retryAfter, time.Second)
		f.apiErr = tooManyCalls(body, secret, retryAfter)
	case http.StatusServiceUnavailable, statusOverloaded:
		f.tryNext, f.unavailable, f.retryAfter, f.apiErr.RetryAfter = true, true, retryAfter, retryAfter
		if retryAfter > 0 {
			f.outcome, f.quick = Overloaded, true
		}
	case http.StatusBadGateway:
		f.tryNext = true
	case http.StatusGatewayTimeout:
		f.tryNext, f.apiErr = true, upstreamTimeout()
	default:
		if isCallerError(r.Status) {
			return &failure{apiErr: refusalError(r.Status, body, secret), outcome: Refused}
		}
	}
	return f
}

func tooManyCalls(body []byte, secret string, retryAfter time.Duration) *apierror.Error {
	e := &apierror.Error{
		Status: http.StatusTooManyRequests, Type: apierror.RateLimited, Code: apierror.RateLimitExceeded,
		RetryAfter: max(retryAfter, time.Second),
		Message:    "The model server is not accepting more calls at the moment.",
	}
	if reason := refusalError(e.Status, body, secret).Message; reason != noReason {
		e.Message = "The model server is not accepting more calls at the moment: " + reason
	}
	return e
}

func readRefusal(body upstream.Body) []byte {
	var text []byte
	buffer := make([]byte, 4<<10)
	for until := time.Now().Add(refusalTime); len(text) < maxRefusal; {
		left := time.Until(until)
		if left <= 0 {
			break
		}
		body.Allow(left)
		n, err := body.Read(buffer)
		if text = append(text, buffer[:n]...); err != nil {
			break
		}
	}
	return text
}

func isCallerError(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

const statusOverloaded = 529

const noReason = "The model server rejected the request."

// refusalError converts an upstream's error response to the gateway's format. Servers send
// {"error": {...}} or {"error": "..."}, the same members at the top level, or {"detail": "..."}.
func refusalError(status int, body []byte, secret string) *apierror.Error {
	e := &apierror.Error{Status: status, Type: apierror.InvalidRequest, Message: noReason}
	object, ok := jsonedit.ParseObject(bytes.TrimSpace(body))
	if !ok {
		return e
	}
	details := object
	if inner := object.Get("error"); inner.IsObject() {
		details = inner
	}
	for _, message := range []gjson.Result{details.Get("message"), object.Get("error"), object.Get("detail")} {
		if message.Type == gjson.String && message.Str != "" {
			e.Message = sanitized(message.Str, secret)
			break
		}
	}
	if param := details.Get("param"); param.Type == gjson.String {
		e.Param = sanitized(param.Str, secret)
	}
	if code := details.Get("code"); code.Type == gjson.String {
		e.Code = sanitized(code.Str, secret)
	}
	return e
}

// sanitized removes the secret and invalid UTF-8 from an upstream's text and truncates it.
func sanitized(text, secret string) string {
	if secret != "" {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}

// errorInAnswer returns the failure for a response with status 200 that contains an error.
func errorInAnswer(object gjson.Result, secret string) *failure {
	code := object.Get("error.code")
	if !code.Exists() {
		code = object.Get("code")
	}
	if status := int(code.Int()); code.Type == gjson.Number && isCallerError(status) {
		return &failure{apiErr: refusalError(status, []byte(object.Raw), secret), outcome: Refused}
	}
	return failed(errors.New("the upstream responded with status 200 and an error in the body"))
}

// retryDelay parses the upstream's Retry-After, in seconds or as a date. It returns 0 if it is missing or invalid.
func retryDelay(r upstream.Reply) time.Duration {
	if seconds, err := strconv.ParseFloat(r.RetryAfter, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		if !(seconds > 0) {
			return 0 // also true for NaN
		}
		return time.Duration(math.Ceil(min(seconds, maxRetryAfter.Seconds()))) * time.Second
	}
	at, err := http.ParseTime(r.RetryAfter)
	if err != nil {
		return 0
	}
	// The date is based on the upstream's clock, which its Date header shows.
	now, err := http.ParseTime(r.Date)
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
