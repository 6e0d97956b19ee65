package lambdahttp

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"
	api "go.opentelemetry.io/otel/trace"

	"cutroom/shared/platform/trace"
	"cutroom/shared/platform/xray"
)

// requestIDHeader carries the id of a request; see httpserver.
const requestIDHeader = "X-Request-Id"

// newRequest makes the request that an event stands for. Its path is the one
// below the stage, or below the base path of a custom domain, and its body is
// decoded as it is read, so that the bytes are not held twice.
func newRequest(ctx context.Context, event events.APIGatewayProxyRequest) (*http.Request, error) {
	body, length := bodyOf(event)
	event.Body, event.IsBase64Encoded = "", false
	event.Path = pathBelow(event.Path, event.Resource)
	var accessor core.RequestAccessor
	r, err := accessor.EventToRequest(event)
	if err != nil {
		return nil, fmt.Errorf("read the event: %w", err)
	}
	// As a server would have it: the header is gone from Header, and no body is
	// none.
	r.Header.Del("Host")
	r.Body, r.ContentLength = http.NoBody, 0
	if length > 0 {
		r.Body, r.ContentLength = io.NopCloser(body), length
	}
	if r.Header.Get(requestIDHeader) == "" {
		// The id by which API Gateway logs the request, so that one id leads
		// through all logs.
		r.Header.Set(requestIDHeader, event.RequestContext.RequestID)
	}
	return r.WithContext(withInvocation(withTrace(ctx, r.Header), event.RequestContext.RequestID)), nil
}

// withTrace puts the request beneath the segment that Lambda makes of the
// invocation. Where Lambda does not trace it the client's own trace, which the
// header names, is carried on.
func withTrace(ctx context.Context, header http.Header) context.Context {
	segment, _ := ctx.Value("x-amzn-trace-id").(string) // as aws-lambda-go has it
	traced := xray.WithParent(ctx, segment)
	if header.Get(trace.Header) != "" && !api.SpanContextFromContext(traced).IsSampled() {
		return ctx
	}
	return traced
}

// bodyOf gives the body of an event and its length in bytes.
func bodyOf(event events.APIGatewayProxyRequest) (io.Reader, int64) {
	source := strings.NewReader(event.Body)
	if !event.IsBase64Encoded {
		return source, source.Size()
	}
	padding := len(event.Body) - len(strings.TrimRight(event.Body, "="))
	return base64.NewDecoder(base64.StdEncoding, source), int64(base64.StdEncoding.DecodedLen(len(event.Body)) - padding)
}

// pathBelow gives the part of a path that the resource is the pattern of. What
// stands before it is the base path of a custom domain; the name of a stage is
// never in the path of an event.
func pathBelow(path, resource string) string {
	if !strings.HasPrefix(resource, "/") || strings.Contains(resource, "+}") {
		return path // a greedy pattern has no number of segments
	}
	for extra := segments(path) - segments(resource); extra > 0; extra-- {
		_, rest, found := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		if !found {
			return "/"
		}
		path = "/" + rest
	}
	return path
}

// segments counts those of a path; a slash at its end begins none.
func segments(path string) int { return strings.Count(strings.TrimSuffix(path, "/"), "/") }
