package lambdahttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
)

// The runtime's client sends this many bytes at a time.
const streamBuffer = 32 << 10

var errClosed = errors.New("the invocation has ended")

func stream(handler http.Handler) func(context.Context,
	events.APIGatewayProxyRequest) (*events.APIGatewayProxyStreamingResponse, error) {
	return func(ctx context.Context, event events.APIGatewayProxyRequest) (*events.APIGatewayProxyStreamingResponse,
		error) {
		r, err := newRequest(ctx, event)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(r.Context())
		reader, writer := io.Pipe()
		w := &streamWriter{
			header: http.Header{}, started: make(chan struct{}), bodiless: r.Method == http.MethodHead,
			pipe: writer, buffer: bufio.NewWriterSize(writer, streamBuffer),
		}
		body := &streamBody{PipeReader: reader, cancel: cancel, ended: make(chan struct{})}
		go func() {
			defer close(body.ended)
			w.run(handler, r.WithContext(ctx))
		}()
		select {
		case <-w.started:
		case <-body.ended:
			// Without a status to send, the invocation fails, and API Gateway responds.
			if w.status == 0 {
				cancel()
				return nil, w.failure
			}
		}
		return &events.APIGatewayProxyStreamingResponse{StatusCode: w.status, MultiValueHeaders: w.sent, Body: body}, nil
	}
}

// streamBody is the body of a response. The runtime's client calls Close at the end, which cancels
// the handler and waits for it.
type streamBody struct {
	*io.PipeReader
	cancel context.CancelFunc
	ended  chan struct{}
}

func (b *streamBody) Close() error {
	b.cancel()
	b.CloseWithError(errClosed)
	<-b.ended
	return nil
}

// Only the handler's goroutine uses the fields of streamWriter, with two exceptions: others may use the channel
// started and, once it is closed, the fields that were set before.
type streamWriter struct {
	header http.Header
	// started is closed once status and sent are set.
	started  chan struct{}
	status   int
	sent     http.Header
	bodiless bool
	pipe     *io.PipeWriter
	buffer   *bufio.Writer
	failure  error
}

// If the handler panics, the client sees an incomplete response.
func (w *streamWriter) run(handler http.Handler, r *http.Request) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			w.failure = errAborted
		default:
			w.failure = fmt.Errorf("the handler panicked: %v", p)
		}
		if w.failure == nil {
			w.WriteHeader(http.StatusOK)
			w.failure = w.buffer.Flush()
		}
		w.pipe.CloseWithError(w.failure)
	}()
	handler.ServeHTTP(w, r)
}

func (w *streamWriter) Header() http.Header { return w.header }

func (w *streamWriter) WriteHeader(status int) {
	if w.status != 0 || status < 200 {
		return
	}
	w.status, w.sent = status, sentHeader(w.header)
	w.bodiless = w.bodiless || hasNoBody(status)
	close(w.started)
}

func (w *streamWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.bodiless {
		return len(p), nil
	}
	return w.buffer.Write(p)
}

// FlushError is called by http.ResponseController.
func (w *streamWriter) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return w.buffer.Flush()
}

func (w *streamWriter) Flush() { _ = w.FlushError() } // the next write reports the error
