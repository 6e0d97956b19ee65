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
	// maxRefusal bounds what is read of an upstream's refusal, in bytes.
	maxRefusal = 64 << 10
	// refusalTime bounds how long reading it may take.
	refusalTime = 5 * time.Second
	// maxMessage bounds how much of it the caller sees, in bytes.
	maxMessage = 4 << 10
	// maxRetryAfter bounds the wait that an upstream may ask a caller for: few
	// limits last longer than an hour, and none a year.
	maxRetryAfter = time.Hour
)

// refused is the failure of an upstream that answered with another status than
// 200.
//
// A refusal of the request itself is passed on; so is one of too many calls,
// unless another upstream takes the call. If the upstream is busy or broken,
// another one gets the call. Anything else, such as an unknown key or model, is
// a mistake in this service's own settings.
func refused(r upstream.Reply, secret string) *failure {
	body := readRefusal(r.Body)
	f := &failure{apiErr: upstreamFailed(), outcome: Failed, cause: fmt.Errorf("it answered with status %d", r.Status)}
	retryAfter := retryDelay(r)
	switch r.Status {
	case http.StatusTooManyRequests:
		f.outcome, f.tryNext, f.quick, f.retryAfter = Overloaded, true, true, retryAfter
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

// tooManyCalls is the answer for an upstream's 429, with its reason if it
// states one.
func tooManyCalls(body []byte, secret string, retryAfter time.Duration) *apierror.Error {
	e := &apierror.Error{
		Status: http.StatusTooManyRequests, Type: apierror.RateLimited, Code: apierror.RateLimitExceeded,
		RetryAfter: max(retryAfter, time.Second),
		Message:    "The model server takes no more calls now.",
	}
	if reason := refusalError(e.Status, body, secret).Message; reason != noReason {
		e.Message = "The model server takes no more calls now: " + reason
	}
	return e
}

// readRefusal reads the beginning of a refusal, for a limited time. An error
// ends the reading.
func readRefusal(body upstream.Body) []byte {
	var text []byte
	room := make([]byte, 4<<10)
	for until := time.Now().Add(refusalTime); len(text) < maxRefusal; {
		left := time.Until(until)
		if left <= 0 {
			break
		}
		body.Allow(left)
		n, err := body.Read(room)
		if text = append(text, room[:n]...); err != nil {
			break
		}
	}
	return text
}

// isCallerError reports whether an upstream's status says that the caller's
// request is wrong, rather than how the gateway sent it.
func isCallerError(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

// statusOverloaded is what servers of Messages say instead of 503.
const statusOverloaded = 529

// noReason is the message for a refusal that states no reason.
const noReason = "The model server refused the request."

// refusalError is an upstream's refusal in the gateway's shape. Servers write
// it in several: {"error": {...}} or {"error": "..."}, the same members at the
// top, or {"detail": "..."}.
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

// sanitized makes a text of an upstream fit to be shown.
func sanitized(text, secret string) string {
	if secret != "" {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}

// errorInAnswer is the failure of an upstream that answered with status 200,
// and then with an error.
func errorInAnswer(object gjson.Result, secret string) *failure {
	code := object.Get("error.code")
	if !code.Exists() {
		code = object.Get("code")
	}
	if status := int(code.Int()); code.Type == gjson.Number && isCallerError(status) {
		return &failure{apiErr: refusalError(status, []byte(object.Raw), secret), outcome: Refused}
	}
	return failed(errors.New("it answered with status 200 and an error inside"))
}

// retryDelay returns how long the upstream asks not to be called, which it
// states in seconds or as a date; 0 if it does not. Some servers write
// fractions of seconds.
func retryDelay(r upstream.Reply) time.Duration {
	if seconds, err := strconv.ParseFloat(r.RetryAfter, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		if !(seconds > 0) {
			return 0 // this also covers NaN
		}
		return time.Duration(math.Ceil(min(seconds, maxRetryAfter.Seconds()))) * time.Second
	}
	at, err := http.ParseTime(r.RetryAfter)
	if err != nil {
		return 0
	}
	// The date is by the upstream's own clock, if it sends that.
	now, err := http.ParseTime(r.Date)
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
