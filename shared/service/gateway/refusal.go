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
)

const (
	// maxRefusal bounds what is read of an upstream's refusal, in bytes.
	maxRefusal = 64 << 10
	// refusalTime bounds how long its reading may take.
	refusalTime = 5 * time.Second
	// maxMessage bounds what a caller is told of it, in bytes.
	maxMessage = 4 << 10
	// longestRetryAfter bounds what a caller is told to wait on an upstream's word:
	// few limits of calls are for longer than an hour, and none for a year.
	longestRetryAfter = time.Hour
)

// refused is an upstream that answered with another status than 200.
//
// What says that the request is wrong is passed on, and so is what says that
// there are too many, unless another upstream takes the call. What says that the
// upstream is busy or broken sends the call to another one. The rest, such as an
// unknown key or model, is a mistake of this service's own settings.
func refused(r reply, secret string) *failure {
	body := readRefusal(r.body)
	f := &failure{told: upstreamFailed(), outcome: Failed, cause: fmt.Errorf("it answered with status %d", r.status)}
	rest := r.rest()
	switch r.status {
	case http.StatusTooManyRequests:
		f.outcome, f.elsewhere, f.rest = Overloaded, true, rest
		f.told = tooManyCalls(body, secret, rest)
	case http.StatusServiceUnavailable:
		f.elsewhere, f.unavailable, f.rest, f.told.RetryAfter = true, true, rest, rest
		if rest > 0 {
			f.outcome = Overloaded
		}
	case http.StatusBadGateway:
		f.elsewhere = true
	case http.StatusGatewayTimeout:
		f.elsewhere, f.told = true, upstreamTimeout()
	default:
		if isCallersFault(r.status) {
			return &failure{told: passedOn(r.status, body, secret), outcome: Refused}
		}
	}
	return f
}

// tooManyCalls is an upstream's 429, with its reason where it gives one.
func tooManyCalls(body []byte, secret string, rest time.Duration) *Error {
	e := &Error{
		Status: http.StatusTooManyRequests, Type: RateLimited, Code: RateLimitExceeded, RetryAfter: max(rest, time.Second),
		Message: "The model server takes no more calls now.",
	}
	if reason := passedOn(e.Status, body, secret).Message; reason != noReason {
		e.Message = "The model server takes no more calls now: " + reason
	}
	return e
}

// readRefusal reads the beginning of a refusal, within a bounded time. What of it
// cannot be read is not told.
func readRefusal(body replyBody) []byte {
	var text []byte
	room := make([]byte, 4<<10)
	for until := time.Now().Add(refusalTime); len(text) < maxRefusal; {
		left := time.Until(until)
		if left <= 0 {
			break
		}
		body.allow(left)
		n, err := body.Read(room)
		if text = append(text, room[:n]...); err != nil {
			break
		}
	}
	return text
}

// isCallersFault reports whether an upstream's status says that the caller's
// request is wrong, rather than how it was sent.
func isCallersFault(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

// noReason is what is told of a refusal that says nothing.
const noReason = "The model server refused the request."

// passedOn is an upstream's refusal in the gateway's shape. Servers write it in
// several: {"error": {...}} or {"error": "..."}, the same members at the top, or
// {"detail": "..."}.
func passedOn(status int, body []byte, secret string) *Error {
	e := &Error{Status: status, Type: InvalidRequest, Message: noReason}
	object, ok := parseObject(bytes.TrimSpace(body))
	if !ok {
		return e
	}
	told := object
	if inner := object.Get("error"); inner.IsObject() {
		told = inner
	}
	for _, message := range []gjson.Result{told.Get("message"), object.Get("error"), object.Get("detail")} {
		if message.Type == gjson.String && message.Str != "" {
			e.Message = clean(message.Str, secret)
			break
		}
	}
	if param := told.Get("param"); param.Type == gjson.String {
		e.Param = clean(param.Str, secret)
	}
	if code := told.Get("code"); code.Type == gjson.String {
		e.Code = clean(code.Str, secret)
	}
	return e
}

// clean makes a text of an upstream's fit to be shown.
func clean(text, secret string) string {
	if secret != "" {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}

// errorInside is an upstream that answered with status 200, and then with an
// error.
func errorInside(object gjson.Result, secret string) *failure {
	code := object.Get("error.code")
	if !code.Exists() {
		code = object.Get("code")
	}
	if status := int(code.Int()); code.Type == gjson.Number && isCallersFault(status) {
		return &failure{told: passedOn(status, []byte(object.Raw), secret), outcome: Refused}
	}
	return failed(fmt.Errorf("it answered with an error inside of status 200"))
}

// rest reads how long the upstream asks to be left alone, in seconds or until a
// date; 0 when it does not. Some servers write fractions of seconds.
func (r reply) rest() time.Duration {
	if seconds, err := strconv.ParseFloat(r.retryAfter, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		if !(seconds > 0) {
			return 0 // which NaN is not either
		}
		return time.Duration(math.Ceil(min(seconds, longestRetryAfter.Seconds()))) * time.Second
	}
	at, err := http.ParseTime(r.retryAfter)
	if err != nil {
		return 0
	}
	// By the upstream's own clock, where it tells it.
	now, err := http.ParseTime(r.date)
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), longestRetryAfter)
}
