package lambdahttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"
)

// API Gateway turns this error into a 502.
var errAborted = errors.New("the handler aborted its response")

func buffer(handler http.Handler) func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse,
	error) {
	return func(ctx context.Context, event events.APIGatewayProxyRequest) (answer events.APIGatewayProxyResponse,
		err error) {
		r, err := newRequest(ctx, event)
		if err != nil {
			return answer, err
		}
		w := &bufferedWriter{answer: core.NewProxyResponseWriter(), header: http.Header{},
			bodiless: r.Method == http.MethodHead}
		defer func() {
			// Nothing has been sent yet, and an aborted response must not look complete.
			if p := recover(); p == http.ErrAbortHandler {
				err = errAborted
			} else if p != nil {
				panic(p)
			}
		}()
		handler.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		return w.answer.GetProxyResponse()
	}
}

// bufferedWriter behaves like a server's writer: the first status freezes the header, and HEAD has no body.
type bufferedWriter struct {
	answer   *core.ProxyResponseWriter
	header   http.Header
	started  bool
	bodiless bool
}

func (w *bufferedWriter) Header() http.Header { return w.header }

func (w *bufferedWriter) WriteHeader(status int) {
	if w.started || status < 200 {
		return
	}
	w.started = true
	for field, values := range sentHeader(w.header) {
		w.answer.Header()[field] = values
	}
	w.answer.WriteHeader(status)
	w.bodiless = w.bodiless || hasNoBody(status)
}

func (w *bufferedWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.bodiless {
		return len(p), nil
	}
	return w.answer.Write(p)
}

func (w *bufferedWriter) Flush() { w.WriteHeader(http.StatusOK) }
