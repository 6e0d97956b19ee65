package client

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

const (
	// tries is how often a call is sent at most.
	tries = 4
	// longestPause is how long a call waits for its repetition at most. A service
	// that asks for more has its refusal told instead.
	longestPause = 30 * time.Second
)

// send sends a call, again where that helps, until there is an answer of success.
// The caller closes its body.
func (c *Client) send(ctx context.Context, request call) (response *http.Response, err error) {
	err = c.repeat(ctx, request, func() error {
		response, err = c.once(ctx, request)
		return err
	})
	return response, err
}

// repeat tries a call until it succeeds, or another try would not help.
func (c *Client) repeat(ctx context.Context, request call, once func() error) error {
	for try := 1; ; try++ {
		err := once()
		if err == nil {
			return nil
		}
		pause, again := c.pause(request, err, try)
		if !again || try == tries || ctx.Err() != nil {
			return err
		}
		if c.Repeating != nil {
			c.Repeating(err, pause)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// pause says whether a call that failed is worth another try, and when.
func (c *Client) pause(request call, err error, try int) (time.Duration, bool) {
	pause := min(c.Backoff<<(try-1), longestPause)
	var refusal *Error
	if errors.As(err, &refusal) {
		switch refusal.Status {
		case http.StatusTooManyRequests:
			// Nothing was done: any call may follow.
		case http.StatusConflict:
			// An earlier try of this very call is still under way.
			if request.header.Get(idempotencyHeader) == "" || refusal.RetryAfter == 0 {
				return 0, false
			}
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			if !request.repeatable {
				return 0, false
			}
		default:
			return 0, false
		}
		return max(pause, refusal.RetryAfter), refusal.RetryAfter <= longestPause
	}
	var broken *ConnectionError
	if !errors.As(err, &broken) {
		return 0, false
	}
	// What was never connected was never sent. Where nobody has answered yet,
	// nobody is likely to be there.
	var dialing *net.OpError
	if errors.As(err, &dialing) && dialing.Op == "dial" {
		return pause, c.answered.Load()
	}
	return pause, request.repeatable
}

// once sends a call one time.
func (c *Client) once(ctx context.Context, request call) (*http.Response, error) {
	guarded, guard := watch(ctx, cmp.Or(request.silence, silence))
	response, err := c.exchange(guarded, guard, request)
	if err != nil {
		guard.end()
		if stopped := context.Cause(guarded); errors.Is(stopped, errSilent) {
			err = stopped
		}
		return nil, connectionError(ctx, request.url, err)
	}
	c.answered.Store(true)
	response.Body = &guardedBody{ReadCloser: response.Body, guard: guard}
	if response.StatusCode >= 200 && response.StatusCode <= 299 {
		return response, nil
	}
	defer response.Body.Close()
	return nil, refusalOf(response)
}

func (c *Client) exchange(ctx context.Context, guard *guard, sent call) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, sent.method, sent.url, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range sent.header {
		request.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	request.Header.Set("User-Agent", c.UserAgent)
	if sent.body != nil {
		request.ContentLength = sent.body.size
		if sent.body.contentType != "" {
			request.Header.Set("Content-Type", sent.body.contentType)
		}
		if sent.body.size > expectAbove {
			request.Header.Set("Expect", "100-continue")
		}
		request.GetBody = func() (io.ReadCloser, error) {
			content, err := sent.body.open()
			if err != nil {
				return nil, &sourceError{err}
			}
			return &sentBody{ReadCloser: content, guard: guard, total: sent.body.size, sent: sent.body.sent}, nil
		}
		if request.Body, err = request.GetBody(); err != nil {
			return nil, err
		}
	}
	return c.http.Do(request)
}

// sleep waits, unless the context ends first.
func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errSilent ends a call whose connection moves nothing any more.
var errSilent = errors.New("the server has said nothing for too long")

// guard ends a call when its connection has been silent for too long.
type guard struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func watch(ctx context.Context, limit time.Duration) (context.Context, *guard) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &guard{limit, time.AfterFunc(limit, func() { cancel(errSilent) }), cancel}
}

// alive tells that something was heard.
func (g *guard) alive() { g.timer.Reset(g.limit) }

func (g *guard) end() {
	g.timer.Stop()
	g.cancel(nil)
}

// guardedBody is an answer's body, whose end ends the guard.
type guardedBody struct {
	io.ReadCloser
	guard *guard
}

func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.guard.alive()
	return n, err
}

func (b *guardedBody) Close() error {
	defer b.guard.end()
	return b.ReadCloser.Close()
}

// sentBody is a request's body that tells how far it is.
type sentBody struct {
	io.ReadCloser
	guard       *guard
	done, total int64
	sent        Progress
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.guard.alive()
	b.done += int64(n)
	if b.sent != nil && n > 0 {
		b.sent(b.done, b.total)
	}
	if err != nil && err != io.EOF {
		err = &sourceError{err}
	}
	return n, err
}
