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
	tries = 4
	// If the service asks for a longer delay, the client returns the error instead of retrying.
	longestPause = 30 * time.Second
)

// send returns a successful response. The caller must close its body.
func (c *Client) send(ctx context.Context, request call) (response *http.Response, err error) {
	err = c.repeat(ctx, request, func() error {
		response, err = c.once(ctx, request)
		return err
	})
	return response, err
}

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
		if c.config.Repeating != nil {
			c.config.Repeating(err, pause)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// pause returns the delay before a failed call is retried, and whether to retry at all.
func (c *Client) pause(request call, err error, try int) (time.Duration, bool) {
	pause := min(c.config.Backoff<<(try-1), longestPause)
	var refusal *Error
	if errors.As(err, &refusal) {
		switch refusal.Status {
		case http.StatusTooManyRequests:
			// A rejected call has no effect, so any call may be retried.
		case http.StatusConflict:
			// An earlier attempt of this call is still running.
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
	// Nothing was sent. Retry only if an earlier call succeeded. Otherwise there is probably no
	// service at this address.
	var dialing *net.OpError
	if errors.As(err, &dialing) && dialing.Op == "dial" {
		return pause, c.answered.Load()
	}
	return pause, request.repeatable
}

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
	request.Header.Set("User-Agent", c.config.UserAgent)
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

var errSilent = errors.New("the server sent nothing for too long")

type guard struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func watch(ctx context.Context, limit time.Duration) (context.Context, *guard) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &guard{limit, time.AfterFunc(limit, func() { cancel(errSilent) }), cancel}
}

func (g *guard) alive() { g.timer.Reset(g.limit) }

func (g *guard) end() {
	g.timer.Stop()
	g.cancel(nil)
}

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
