package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"cutroom/shared/platform/panics"
)

// embeddedURL is the address of the embedded model server. Its host name is never resolved.
const embeddedURL = "http://embedded/v1"

var errEmbedded = errors.New("the embedded model server failed")

// embedded calls the handler of the embedded model server. It does not use http.Server, which would
// add 0.3 MB to each of the gateway's functions.
type embedded struct {
	handler http.Handler
	logger  *slog.Logger
	// life is canceled by close, which ends all calls.
	life context.Context
	end  context.CancelFunc
	// mu is held while a call starts, so that close either waits for the call or prevents it.
	mu    sync.Mutex
	calls sync.WaitGroup
}

func newEmbedded(handler http.Handler, logger *slog.Logger) *embedded {
	e := &embedded{handler: handler, logger: logger}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

// RoundTrip returns when the handler has started its response. The call ends when the response body is closed or the
// request's context ends, even while the body is being read.
//
// Errors: errors from the request's body; the context's cause; errEmbedded if the handler panicked;
// http.ErrServerClosed after close.
func (e *embedded) RoundTrip(r *http.Request) (*http.Response, error) {
	// Read the body now, because the handler may outlast the call, and the request's body must not be used after the
	// call.
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, err
	}
	if !e.begin() {
		return nil, http.ErrServerClosed
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	read, write := io.Pipe()
	answer := &embeddedAnswer{header: http.Header{}, body: write, started: make(chan struct{})}
	context.AfterFunc(ctx, func() { write.CloseWithError(context.Cause(ctx)) })
	request := r.Clone(ctx)
	request.Body = io.NopCloser(bytes.NewReader(body))
	go e.serve(answer, request, cancel)
	select {
	case <-answer.started:
	case <-ctx.Done():
		select {
		case <-answer.started: // the response had already started
		default:
			return nil, context.Cause(ctx)
		}
	}
	return &http.Response{
		StatusCode: answer.status, Header: answer.sent, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		// Like chunked encoding, the pipe distinguishes EOF from a failure.
		ContentLength: -1, TransferEncoding: []string{"chunked"},
		Body: &embeddedBody{read, cancel}, Request: r,
	}, nil
}

func (e *embedded) CloseIdleConnections() {}

func (e *embedded) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.life.Err() != nil {
		return false
	}
	e.calls.Add(1)
	return true
}

// serve runs the handler. If the handler panics, only this call ends. Output is dropped once the call has ended.
func (e *embedded) serve(answer *embeddedAnswer, r *http.Request, cancel context.CancelCauseFunc) {
	defer e.calls.Done()
	defer cancel(nil)
	defer context.AfterFunc(e.life, func() { cancel(http.ErrServerClosed) })()
	if !panics.Run(e.logger, "the embedded model server", func() { e.handler.ServeHTTP(answer, r) }) {
		cancel(errEmbedded)
	}
	err := context.Cause(r.Context())
	if err == nil {
		answer.WriteHeader(http.StatusOK)
	}
	answer.body.CloseWithError(err)
}

// close ends all calls and waits for their handlers.
func (e *embedded) close() {
	e.mu.Lock()
	e.end()
	e.mu.Unlock()
	e.calls.Wait()
}

// embeddedAnswer is the http.ResponseWriter of a call. Writes are unbuffered.
type embeddedAnswer struct {
	header http.Header
	body   *io.PipeWriter
	// started is closed once status and sent are set. sent is a copy of the header.
	started chan struct{}
	status  int
	sent    http.Header
}

func (a *embeddedAnswer) Header() http.Header { return a.header }

// WriteHeader starts the response. It ignores a 1xx status.
func (a *embeddedAnswer) WriteHeader(status int) {
	if a.sent == nil && status >= http.StatusOK {
		a.status, a.sent = status, a.header.Clone()
		close(a.started)
	}
}

func (a *embeddedAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

func (a *embeddedAnswer) Flush() { a.WriteHeader(http.StatusOK) }

type embeddedBody struct {
	*io.PipeReader
	cancel context.CancelCauseFunc
}

func (b *embeddedBody) Close() error {
	b.cancel(nil)
	return b.PipeReader.Close()
}
