package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"cutroom/shared/httpserver"
)

const (
	// maxAttempts bounds how many upstreams one call tries.
	maxAttempts = 3
	// firstByteStream and firstByteWhole bound the wait for the first byte where
	// the catalog says nothing; a whole answer is generated before it begins.
	firstByteStream = 2 * time.Minute
	firstByteWhole  = 10 * time.Minute
	// idleTime bounds the silence between bytes where the catalog says nothing.
	idleTime = 2 * time.Minute
)

// failure is a call of an upstream that gave no good answer.
type failure struct {
	// told is what the caller is told, unless another upstream answers.
	told    *Error
	outcome Outcome
	// elsewhere reports that another upstream may do better.
	elsewhere bool
	// rest is how long the upstream asks to be left alone.
	rest time.Duration
	// cause is for the log.
	cause error
}

// serve has one upstream after the other try, for as long as the caller has been
// sent nothing.
func (c *completion) serve() *Error {
	var room [maxAttempts]*upstream
	tried := room[:0]
	var last *Error
	for len(tried) < maxAttempts {
		l, full := c.pool.take(tried)
		if full != nil {
			if last != nil {
				return last
			}
			return full
		}
		tried = append(tried, l.upstream)
		f := c.attempt(l)
		if f == nil {
			l.release(Succeeded, 0, c.Now())
			c.Observer.Attempted(Attempt{c.pool.model.ID, l.row.Name, Succeeded})
			return nil
		}
		if c.r.Context().Err() != nil {
			f.outcome, f.elsewhere = Abandoned, false
		}
		l.release(f.outcome, f.rest, c.Now())
		c.Observer.Attempted(Attempt{c.pool.model.ID, l.row.Name, f.outcome})
		if f.outcome == Failed || f.outcome == TimedOut || f.outcome == Overloaded {
			c.log(slog.LevelWarn, "an upstream gave no answer", slog.String("model", c.pool.model.ID),
				slog.String("upstream", l.row.Name), slog.String("outcome", string(f.outcome)), slog.Any("error", f.cause))
		}
		last = f.told
		if !f.elsewhere || c.stream.hasBegun() {
			return last
		}
	}
	return last
}

// attempt calls one upstream and passes its answer on.
func (c *completion) attempt(l lease) *failure {
	ctx, cancel := context.WithCancelCause(c.r.Context())
	defer cancel(nil)
	secret, err := l.secret.get(ctx)
	if err != nil {
		return failed(err)
	}
	dog := newWatchdog(cancel, c.firstByte())
	defer dog.rest()
	response, err := l.transport.RoundTrip(c.upstreamRequest(ctx, l, secret))
	c.asked = true
	if err != nil {
		return unreachable(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		dog.arm(idleTime)
		return refused(response, secret)
	}
	if c.request.Stream {
		return c.relay(ctx, response, dog, secret)
	}
	return c.answer(ctx, response, dog, secret)
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

// upstreamRequest makes the request that an upstream gets: of the caller's
// header it has the request id alone.
func (c *completion) upstreamRequest(ctx context.Context, l lease, secret string) *http.Request {
	body := c.request.Body(l.row.Model)
	target := l.urls[c.route]
	header := make(http.Header, 6)
	header["Content-Type"] = jsonType
	header["User-Agent"] = userAgent
	header["X-Request-Id"] = []string{httpserver.RequestID(c.r.Context())}
	// Without a value it is not sent. It lets the transport repeat the request
	// on a new connection where a kept one turns out to be closed.
	header["X-Idempotency-Key"] = nil
	if c.request.Stream {
		header["Accept"] = streamType
	}
	if secret != "" {
		header["Authorization"] = []string{"Bearer " + secret}
	}
	request := &http.Request{
		Method: http.MethodPost, URL: target, Host: target.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}
	return request.WithContext(ctx)
}

var userAgent = []string{"cutroom"}

// failed is an upstream that gave no answer, whether it could not be reached or
// answered what is none.
func failed(cause error) *failure {
	return &failure{told: upstreamFailed(), outcome: Failed, cause: cause}
}

func upstreamFailed() *Error {
	return &Error{Status: http.StatusBadGateway, Type: API, Code: UpstreamFailed, Message: "The model server failed to answer."}
}

func upstreamTimeout() *Error {
	return &Error{Status: http.StatusGatewayTimeout, Type: API, Code: UpstreamTimeout, Message: "The model server did not answer in time."}
}

// unreachable is an upstream that no header came from. Whatever it is, another
// one may be tried, but for one that was waited for as long as a call may wait.
func unreachable(ctx context.Context, err error) *failure {
	if errors.Is(context.Cause(ctx), errSilent) {
		return &failure{told: upstreamTimeout(), outcome: TimedOut, cause: errSilent}
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &failure{told: upstreamTimeout(), outcome: TimedOut, elsewhere: true, cause: err}
	}
	f := failed(err)
	f.elsewhere = true
	return f
}

// brokenOff is an upstream whose answer did not come to its end.
func brokenOff(ctx context.Context, err error) *failure {
	if errors.Is(context.Cause(ctx), errSilent) {
		return &failure{told: upstreamTimeout(), outcome: TimedOut, cause: errSilent}
	}
	return failed(err)
}
