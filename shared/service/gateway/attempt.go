package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/dialect"
	"cutroom/shared/service/gateway/upstream"
)

const (
	// maxAttempts limits how many upstreams a call tries. maxTried also counts refused connections.
	maxAttempts = 3
	maxTried    = 16
	// After a first-byte timeout, another upstream is tried only if the timeout is at most shortSilence.
	shortSilence = 30 * time.Second
	// Default timeouts. The first byte of a non-streamed response arrives only when the response is complete.
	firstByteStream = 2 * time.Minute
	firstByteWhole  = 10 * time.Minute
	// affinityHeader groups calls that should use the same cache (docs/contract/gateway.md#affinity).
	affinityHeader = "X-Session-Affinity"
	// idleTime is the default timeout between bytes.
	idleTime = 2 * time.Minute
)

type failure struct {
	// apiErr is sent to the caller if no other upstream serves the call.
	apiErr  *apierror.Error
	outcome Outcome
	// tryNext means that another upstream may succeed.
	tryNext bool
	// retryAfter is the pause that the upstream asked for.
	retryAfter time.Duration
	// upstreamFault means that no connection could be made, so the request is not to blame.
	upstreamFault bool
	// quick means that the failure cost the upstream no time or work.
	quick bool
	// unavailable means that the upstream is currently not serving calls.
	unavailable bool
	cause       error
}

// serve tries upstreams and fallback rows until one responds or something has been sent to the caller.
func (c *completion) serve() *apierror.Error {
	var last *apierror.Error
	for c.showRow() {
		apiErr, elsewhere := c.serveRow()
		if apiErr == nil {
			return nil
		}
		last = preferredError(last, apiErr)
		if !elsewhere || c.stream.hasStarted() || c.r.Context().Err() != nil {
			break
		}
		if !c.fallBack() {
			break
		}
		if apiErr = c.reserve(); apiErr != nil {
			last = apiErr
			break
		}
	}
	c.hideRow()
	return last
}

// serveRow tries the upstreams of one row. elsewhere reports whether another row may succeed. If
// all upstreams are busy, it waits and retries as long as the row's queue permits.
func (c *completion) serveRow() (last *apierror.Error, elsewhere bool) {
	c.serving.Ready(c.r.Context())
	call := upstream.Call{Account: c.who.Account(), Elsewhere: len(c.choice.rest) > 0}
	if c.batch != nil {
		call.Yield = c.batch.yield
	}
	if c.serving.Model.Affinity && c.serving.HasChoice() {
		call.Affinity = c.request.Affinity(call.Account, c.r.Header.Get(affinityHeader))
	}
	defer func() { c.waited += call.Waited }()
	for {
		call.Tried = c.tried[:0]
		before := last
		if last, elsewhere = c.tryAll(&call); before != nil && len(call.Tried) == 0 {
			last = before // the upstream's 429 is more specific
		}
		if last == nil || !elsewhere || len(call.Tried) == 0 {
			return last, elsewhere
		}
		wait, busy := busyFor(last)
		if !busy || !c.serving.Pause(&call, wait) {
			return last, true
		}
	}
}

func (c *completion) tryAll(call *upstream.Call) (last *apierror.Error, elsewhere bool) {
	for attempts := 0; attempts < maxAttempts && len(call.Tried) < maxTried; {
		l, unavailable := c.serving.Take(c.r.Context(), call)
		if unavailable != nil && (last == nil || unavailable.Stopping) {
			return c.noUpstream(unavailable), !unavailable.Stopping
		}
		if unavailable != nil {
			return last, true
		}
		call.Tried = append(call.Tried, l)
		f := c.tryUpstream(l)
		if f == nil {
			return nil, false
		}
		last = preferredError(last, f.apiErr)
		if !f.tryNext || c.stream.hasStarted() {
			return last, f.outcome == Refused && isTooLong(f.apiErr)
		}
		if !f.quick {
			attempts++
		}
	}
	return last, true
}

// busyFor reports whether an error means that the upstreams are busy, and how long to wait before a retry.
func busyFor(e *apierror.Error) (wait time.Duration, busy bool) {
	return e.RetryAfter, e.Status == http.StatusTooManyRequests || e.Code == apierror.UpstreamFailed && e.RetryAfter > 0
}

func (c *completion) tryUpstream(l upstream.Slot) *failure {
	c.stream.startKeepAlive()
	model := c.serving.Model.ID
	span := c.startSpan(l)
	c.held, c.span = l, span
	if c.stream != nil && l.MayYield() {
		defer c.yieldIfSlow(l)()
	}
	f := c.attempt(l, span.parent)
	if f != nil && c.r.Context().Err() != nil {
		f.outcome, f.tryNext = Abandoned, false
	}
	if f != nil && errors.Is(context.Cause(c.r.Context()), errSlotTaken) {
		f.apiErr = slotTaken()
	}
	if f == nil || c.held == (upstream.Slot{}) { // only sending the end of the response may have failed
		c.release()
		return f
	}
	c.held = upstream.Slot{}
	c.endSpan(span, f.outcome)
	l.Release(f.result(), c.gateway.config.Now())
	c.gateway.config.Observer.Attempted(Attempt{model, l.Name(), f.outcome})
	if f.outcome == Failed || f.outcome == TimedOut || f.outcome == Overloaded {
		about := []slog.Attr{slog.String("model", model), slog.String("upstream", l.Name())}
		if address := l.Address(); address != "" {
			about = append(about, slog.String("address", address))
		}
		about = append(about, slog.String("outcome", string(f.outcome)), slog.Any("error", f.cause))
		c.log(slog.LevelWarn, "upstream call failed", about...)
	}
	return f
}

// release frees the slot of an upstream whose response has been read completely. It may be called more than once.
func (c *completion) release() {
	if c.held == (upstream.Slot{}) {
		return
	}
	l := c.held
	c.held = upstream.Slot{}
	c.endSpan(c.span, Succeeded)
	l.Release(upstream.Result{}, c.gateway.config.Now())
	c.gateway.config.Observer.Attempted(Attempt{c.serving.Model.ID, l.Name(), Succeeded})
}

func (c *completion) noUpstream(u *upstream.Unavailable) *apierror.Error {
	switch {
	case u.Stopping:
		return stopping("The gateway is shutting down, and no model server was free for the call.")
	case u.Full:
		return &apierror.Error{
			Status: http.StatusTooManyRequests, Type: apierror.RateLimited, Code: apierror.RateLimitExceeded, RetryAfter: u.Wait,
			Message: fmt.Sprintf("The model %s is at capacity.", c.serving.Model.ID),
		}
	}
	return &apierror.Error{
		Status: http.StatusBadGateway, Type: apierror.API, Code: apierror.UpstreamFailed, RetryAfter: u.Wait,
		Message: fmt.Sprintf("No model server for %s is available at the moment.", c.serving.Model.ID),
	}
}

func (f *failure) result() upstream.Result {
	r := upstream.Result{AnyAccount: f.upstreamFault, RetryAfter: f.retryAfter}
	switch {
	case f.outcome == Abandoned:
		r.Verdict = upstream.Unknown
	case errors.Is(f.cause, errAnswerTooLong), errors.Is(f.cause, errManyEdits), errors.Is(f.cause, errEventTooLong),
		errors.Is(f.cause, dialect.ErrManyCalls), errors.Is(f.cause, dialect.ErrInterleaved):
		r.Verdict = upstream.Answered // the request caused the response, so the upstream is not to blame
	case f.outcome == Failed, f.outcome == TimedOut, f.unavailable:
		r.Verdict = upstream.Broken
	}
	return r
}

// preferredError chooses between two upstreams' errors. It prefers a 429, because the caller can act on it. Of two
// 429s, it prefers the one with the shorter wait.
func preferredError(before, now *apierror.Error) *apierror.Error {
	if before != nil && before.Status == http.StatusTooManyRequests &&
		(now.Status >= http.StatusInternalServerError || now.Status == before.Status && now.RetryAfter >= before.RetryAfter) {
		return before
	}
	return now
}

// attempt calls one upstream and forwards its response. parent is the traceparent to send to the upstream.
func (c *completion) attempt(l upstream.Slot, parent string) *failure {
	secret, err := l.Secret(c.r.Context())
	if err != nil {
		return failed(err)
	}
	c.requestSent, c.upstream, c.lent = true, l.Name(), c.lent || l.ReadsLate()
	r, err := l.Call(c.r.Context(), upstream.Request{
		Route: c.request.Route, Body: c.request.Body(l.Model()), ContentType: c.request.ContentType(), Stream: c.request.Stream,
		Secret: secret, FirstByte: c.firstByte(), Traceparent: parent,
	})
	if err != nil {
		f := unreachable(err)
		f.tryNext = f.tryNext || f.outcome == TimedOut && c.silence() <= shortSilence
		return f
	}
	defer r.Body.Close()
	switch {
	case r.Status != http.StatusOK:
		return refused(r, secret)
	case isCompression(r.Encoding):
		f := failed(fmt.Errorf("the response has the content encoding %q, although only identity was accepted", r.Encoding))
		f.tryNext = true
		return f
	}
	if c.route.IsAudio() {
		return c.answerAudio(r, secret)
	}
	if c.request.Stream {
		return c.relay(r, secret)
	}
	return c.answer(r, secret)
}

// firstByte returns how long the upstream may still be silent. It is at least a millisecond.
func (c *completion) firstByte() time.Duration {
	most := c.gateway.config.LongestSilence
	if most == 0 || c.request.Stream {
		return c.silence()
	}
	return max(time.Millisecond, min(c.silence(), most-c.gateway.config.Now().Sub(c.started)))
}

func (c *completion) silence() time.Duration {
	switch set := c.request.Model.Timeouts.FirstByte; {
	case set > 0:
		return set
	case c.request.Stream:
		return firstByteStream
	}
	return firstByteWhole
}

func (c *completion) idle() time.Duration {
	if set := c.request.Model.Timeouts.Idle; set > 0 {
		return set
	}
	return idleTime
}

// isCompression returns false for unknown values, because some servers send a character set.
func isCompression(encoding string) bool {
	switch strings.ToLower(encoding) {
	case "br", "gzip", "x-gzip", "deflate", "zstd", "compress":
		return true
	}
	return false
}

// failed returns the failure for an upstream that was unreachable or sent an unusable response.
func failed(cause error) *failure {
	apiErr := upstreamFailed()
	if errors.Is(cause, errEventTooLong) || errors.Is(cause, errAnswerTooLong) {
		apiErr.Message = fmt.Sprintf("The model server failed: %v.", cause)
	}
	return &failure{apiErr: apiErr, outcome: Failed, cause: cause}
}

func upstreamFailed() *apierror.Error {
	return &apierror.Error{
		Status: http.StatusBadGateway, Type: apierror.API, Code: apierror.UpstreamFailed,
		Message: "The model server failed.",
	}
}

func upstreamTimeout() *apierror.Error {
	return &apierror.Error{
		Status: http.StatusGatewayTimeout, Type: apierror.API, Code: apierror.UpstreamTimeout,
		Message: "The model server did not respond in time.",
	}
}

// unreachable returns the failure for an upstream that sent no response header. Another upstream
// may be tried if the call has time left.
func unreachable(err error) *failure {
	if errors.Is(err, upstream.ErrSilent) {
		return &failure{apiErr: upstreamTimeout(), outcome: TimedOut, cause: err}
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &failure{apiErr: upstreamTimeout(), outcome: TimedOut, tryNext: true, cause: err, upstreamFault: true}
	}
	f := failed(err)
	f.tryNext = true
	var broken *net.OpError
	f.upstreamFault = errors.As(err, &broken) && broken.Op == "dial"
	f.quick = f.upstreamFault
	return f
}

// cutShort returns the failure for a response that ended early.
func cutShort(err error) *failure {
	var noMemory *apierror.Error
	if errors.As(err, &noMemory) {
		return &failure{apiErr: noMemory, outcome: Abandoned, cause: err}
	}
	if errors.Is(err, upstream.ErrSilent) {
		return &failure{apiErr: upstreamTimeout(), outcome: TimedOut, cause: err}
	}
	return failed(err)
}
