package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/upstream"
)

const (
	// maxAttempts limits how many upstreams of a row one call tries. Refused connections do not
	// count, up to maxTried in all.
	maxAttempts = 3
	maxTried    = 16
	// shortSilence is the longest wait for a first byte after which another upstream is tried.
	shortSilence = 30 * time.Second
	// firstByteStream and firstByteWhole limit the wait for the first byte unless the catalog does.
	// An answer that is not streamed is generated before it starts.
	firstByteStream = 2 * time.Minute
	firstByteWhole  = 10 * time.Minute
	// affinityHeader groups calls (docs/contract/gateway.md#affinity).
	affinityHeader = "X-Session-Affinity"
	// idleTime limits the silence between bytes unless the catalog does.
	idleTime = 2 * time.Minute
)

type failure struct {
	// apiErr is the caller's error if no other upstream answers.
	apiErr  *apierror.Error
	outcome Outcome
	// tryNext means that another upstream may succeed.
	tryNext bool
	// retryAfter is how long the upstream asks not to be called.
	retryAfter time.Duration
	// upstreamFault means that no connection could be made, so the upstream is at fault, not the request.
	upstreamFault bool
	// quick means that the failure took no time and cost the upstream nothing.
	quick bool
	// unavailable means that the upstream serves no calls now.
	unavailable bool
	cause       error
}

// serve tries upstreams and rows until one answers or the caller has received something.
func (c *completion) serve() *apierror.Error {
	var last *apierror.Error
	for c.showRow() {
		apiErr, elsewhere := c.serveRow()
		if apiErr == nil {
			return nil
		}
		last = preferredError(last, apiErr)
		if !elsewhere || c.stream.hasBegun() || c.r.Context().Err() != nil {
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

// serveRow tries the upstreams of one row. elsewhere reports whether another row may succeed. If all are
// busy, the call tries again after the time they ask for, if the row's queue allows the wait.
func (c *completion) serveRow() (last *apierror.Error, elsewhere bool) {
	c.serving.Ready(c.r.Context())
	call := upstream.Call{Account: c.who.Account()}
	if c.line != nil {
		call.Yield = c.line.yield
	}
	if c.serving.Model.Affinity && c.serving.HasChoice() {
		call.Affinity = c.request.Affinity(call.Account, c.r.Header.Get(affinityHeader))
	}
	defer func() { c.waited += call.Waited }()
	for {
		call.Tried = c.tried[:0]
		last, elsewhere = c.tryAll(&call)
		if last == nil || !elsewhere || len(call.Tried) == 0 {
			return last, elsewhere
		}
		wait, busy := busyFor(last)
		if !busy || !c.serving.Pause(c.r.Context(), &call, wait) {
			return last, true
		}
	}
}

// tryAll calls the upstreams of a row one after another, within the limits.
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
		if !f.tryNext || c.stream.hasBegun() {
			return last, f.outcome == Refused && isTooLong(f.apiErr)
		}
		if !f.quick {
			attempts++
		}
	}
	return last, true
}

// busyFor reports whether an error means that the upstreams are busy, and for how long.
func busyFor(e *apierror.Error) (wait time.Duration, busy bool) {
	return e.RetryAfter, e.Status == http.StatusTooManyRequests || e.Code == apierror.UpstreamFailed && e.RetryAfter > 0
}

// tryUpstream makes one call to an upstream, and records its outcome.
func (c *completion) tryUpstream(l upstream.Lease) *failure {
	c.stream.startKeepAlive()
	model := c.serving.Model.ID
	span := c.startSpan(l)
	f := c.attempt(l, span.parent)
	if f == nil {
		c.endSpan(span, Succeeded)
		l.Release(upstream.Result{}, c.gateway.config.Now())
		c.gateway.config.Observer.Attempted(Attempt{model, l.Name(), Succeeded})
		return nil
	}
	if c.r.Context().Err() != nil {
		f.outcome, f.tryNext = Abandoned, false
	}
	c.endSpan(span, f.outcome)
	l.Release(f.result(), c.gateway.config.Now())
	c.gateway.config.Observer.Attempted(Attempt{model, l.Name(), f.outcome})
	if f.outcome == Failed || f.outcome == TimedOut || f.outcome == Overloaded {
		about := []slog.Attr{slog.String("model", model), slog.String("upstream", l.Name())}
		if address := l.Address(); address != "" {
			about = append(about, slog.String("address", address))
		}
		about = append(about, slog.String("outcome", string(f.outcome)), slog.Any("error", f.cause))
		c.log(slog.LevelWarn, "an upstream gave no answer", about...)
	}
	return f
}

// noUpstream returns the error if no upstream can be called now.
func (c *completion) noUpstream(u *upstream.Unavailable) *apierror.Error {
	switch {
	case u.Stopping:
		return stopping("The gateway stops, and the call would have to wait for a model server.")
	case u.Full:
		return &apierror.Error{
			Status: http.StatusTooManyRequests, Type: apierror.RateLimited, Code: apierror.RateLimitExceeded, RetryAfter: u.Wait,
			Message: fmt.Sprintf("The model %s has all the calls that it can serve now.", c.serving.Model.ID),
		}
	}
	return &apierror.Error{
		Status: http.StatusBadGateway, Type: apierror.API, Code: apierror.UpstreamFailed, RetryAfter: u.Wait,
		Message: fmt.Sprintf("No model server of %s answers now.", c.serving.Model.ID),
	}
}

// result converts the failure for the upstream's state.
func (f *failure) result() upstream.Result {
	r := upstream.Result{AnyAccount: f.upstreamFault, RetryAfter: f.retryAfter}
	switch {
	case f.outcome == Abandoned:
		r.Verdict = upstream.Unknown
	case f.outcome == Failed, f.outcome == TimedOut, f.unavailable:
		r.Verdict = upstream.Broken
	}
	return r
}

// preferredError chooses between the errors of two upstreams. A 429 comes first, because the caller
// can act on it; of two, the one with the shorter wait wins.
func preferredError(before, now *apierror.Error) *apierror.Error {
	if before != nil && before.Status == http.StatusTooManyRequests &&
		(now.Status >= http.StatusInternalServerError || now.Status == before.Status && now.RetryAfter >= before.RetryAfter) {
		return before
	}
	return now
}

// attempt calls one upstream and passes its answer on. The upstream continues the parent's trace.
func (c *completion) attempt(l upstream.Lease, parent string) *failure {
	secret, err := l.Secret(c.r.Context())
	if err != nil {
		return failed(err)
	}
	c.requestSent, c.upstream = true, l.Name()
	r, err := l.Call(c.r.Context(), upstream.Request{
		Route: c.request.Route, Body: c.request.Body(l.Model()), Stream: c.request.Stream,
		Secret: secret, FirstByte: c.firstByte(), Traceparent: parent,
	})
	if err != nil {
		f := unreachable(err)
		f.tryNext = f.tryNext || f.outcome == TimedOut && c.firstByte() <= shortSilence
		return f
	}
	defer r.Body.Close()
	if r.Status != http.StatusOK {
		return refused(r, secret)
	}
	if c.request.Stream {
		return c.relay(r, secret)
	}
	return c.answer(r, secret)
}

func (c *completion) firstByte() time.Duration {
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

// failed is the failure of an upstream that was unreachable or whose answer was not usable.
func failed(cause error) *failure {
	return &failure{apiErr: upstreamFailed(), outcome: Failed, cause: cause}
}

func upstreamFailed() *apierror.Error {
	return &apierror.Error{
		Status: http.StatusBadGateway, Type: apierror.API, Code: apierror.UpstreamFailed,
		Message: "The model server failed to answer.",
	}
}

func upstreamTimeout() *apierror.Error {
	return &apierror.Error{
		Status: http.StatusGatewayTimeout, Type: apierror.API, Code: apierror.UpstreamTimeout,
		Message: "The model server did not answer in time.",
	}
}

// unreachable is the failure of an upstream that sent no header. Another one may be tried, unless
// the wait took the whole time of a call.
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

// cutShort is the failure of an upstream whose answer ended early.
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
