package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"cutroom/shared/platform/trace"
)

// stdTransport makes calls with http.Transport, for TLS, HTTP/2, a proxy or the embedded server.
type stdTransport struct{ base roundTripper }

type roundTripper interface {
	http.RoundTripper
	CloseIdleConnections()
}

func (t *stdTransport) closeIdle() { t.base.CloseIdleConnections() }

func (t *stdTransport) call(ctx context.Context, target *url.URL, r Request) (Reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	header := http.Header{
		"Content-Type": jsonType, "User-Agent": userAgent, "Accept-Encoding": identityCoding,
		// A nil value is not sent, but permits a retry if a kept connection has been closed.
		"X-Idempotency-Key": nil,
	}
	if r.ContentType != "" {
		header.Set("Content-Type", r.ContentType)
	}
	if r.Stream {
		header["Accept"] = streamType
	}
	switch {
	case r.Secret == "":
	case r.KeyHeader != "":
		header.Set(r.KeyHeader, r.Secret)
	default:
		header["Authorization"] = []string{"Bearer " + r.Secret}
	}
	if r.Version != "" {
		header.Set(versionHeader, r.Version)
	}
	if r.Traceparent != "" {
		header[trace.Header] = []string{r.Traceparent}
	}
	request := (&http.Request{
		Method: http.MethodPost, URL: target, Host: target.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(r.Body.Reader()), ContentLength: int64(r.Body.Len()),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(r.Body.Reader()), nil },
	}).WithContext(ctx)
	body := &stdBody{ctx: ctx, cancel: cancel, until: time.Now().Add(maxCallTime)}
	body.timer = time.AfterFunc(r.FirstByte, func() { cancel(ErrSilent) })
	response, err := t.base.RoundTrip(request)
	if err != nil {
		err = body.explain(err)
		body.stop()
		return Reply{}, err
	}
	body.body = response.Body
	if response.StatusCode == http.StatusSwitchingProtocols {
		_ = body.Close() // the body is not used
		return Reply{}, errSwitched
	}
	return Reply{
		Status:      response.StatusCode,
		ContentType: response.Header.Get("Content-Type"),
		Encoding:    response.Header.Get("Content-Encoding"),
		RetryAfter:  response.Header.Get("Retry-After"),
		Date:        response.Header.Get("Date"),
		Length:      response.ContentLength,
		Framed:      response.ContentLength >= 0 || len(response.TransferEncoding) > 0 || response.ProtoMajor > 1,
		Body:        body,
	}, nil
}

// stdBody is a response's body, with the timer that ends its call.
type stdBody struct {
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	// silence is the timeout for each read, or 0 before Allow is called. until is the deadline of the call.
	silence time.Duration
	until   time.Time
}

func (b *stdBody) Ended() bool { return false }

func (b *stdBody) Allow(silence time.Duration) {
	b.timer.Stop()
	b.silence = silence
}

func (b *stdBody) Read(p []byte) (int, error) {
	if b.silence > 0 {
		b.timer.Reset(min(b.silence, max(time.Until(b.until), 0)))
		defer b.timer.Stop()
	}
	n, err := b.body.Read(p)
	return n, b.explain(err)
}

func (b *stdBody) explain(err error) error {
	if err != nil && err != io.EOF && errors.Is(context.Cause(b.ctx), ErrSilent) {
		return ErrSilent
	}
	return err
}

func (b *stdBody) stop() {
	b.timer.Stop()
	b.cancel(nil)
}

func (b *stdBody) Close() error {
	b.stop()
	return b.body.Close()
}
