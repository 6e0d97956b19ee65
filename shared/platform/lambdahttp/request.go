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

// See httpserver.
const requestIDHeader = "X-Request-Id"

// See httpserver.
const prefixHeader = "X-Forwarded-Prefix"

// newRequest converts an event. The path is relative to the stage, or to a custom domain's base path. The body is
// decoded while it is read, so that it is not in memory twice.
func newRequest(ctx context.Context, event events.APIGatewayProxyRequest) (*http.Request, error) {
	body, length := bodyOf(event)
	event.Body, event.IsBase64Encoded = "", false
	event.Path = pathBelow(event.Path, event.Resource)
	var accessor core.RequestAccessor
	r, err := accessor.EventToRequest(event)
	if err != nil {
		return nil, fmt.Errorf("read the event: %w", err)
	}
	// A local AWS names no domain, and serves each API below a path.
	local := event.RequestContext.DomainName == ""
	if local {
		r.Host = r.Header.Get("Host")
	}
	// As on a server, Host is not in Header and an empty body is http.NoBody.
	r.Header.Del("Host")
	r.Body, r.ContentLength = http.NoBody, 0
	if length > 0 {
		r.Body, r.ContentLength = io.NopCloser(body), length
	}
	// Ignore the client's value.
	r.Header.Del(prefixHeader)
	if prefix, found := strings.CutSuffix(event.RequestContext.Path, event.Path); found && prefix != "" {
		if local {
			prefix = "/restapis/" + event.RequestContext.APIID + prefix + "/_user_request_"
		}
		r.Header.Set(prefixHeader, prefix)
	}
	if r.Header.Get(requestIDHeader) == "" {
		// API Gateway logs the request under this id.
		r.Header.Set(requestIDHeader, event.RequestContext.RequestID)
	}
	return r.WithContext(withInvocation(withTrace(ctx, r.Header), event.RequestContext.RequestID)), nil
}

// withTrace sets the request's parent to Lambda's segment for the invocation. If Lambda does not trace the
// invocation, withTrace forwards the client's trace from the header.
func withTrace(ctx context.Context, header http.Header) context.Context {
	segment, _ := ctx.Value("x-amzn-trace-id").(string) // the key that aws-lambda-go uses
	traced := xray.WithParent(ctx, segment)
	if header.Get(trace.Header) != "" && !api.SpanContextFromContext(traced).IsSampled() {
		return ctx
	}
	return traced
}

func bodyOf(event events.APIGatewayProxyRequest) (io.Reader, int64) {
	source := strings.NewReader(event.Body)
	if !event.IsBase64Encoded {
		return source, source.Size()
	}
	padding := len(event.Body) - len(strings.TrimRight(event.Body, "="))
	return base64.NewDecoder(base64.StdEncoding, source), int64(base64.StdEncoding.DecodedLen(len(event.Body)) - padding)
}

// pathBelow returns the part of a path that matches the resource's pattern. The part before it is a
// custom domain's base path. An event's path never contains the stage's name.
func pathBelow(path, resource string) string {
	if !strings.HasPrefix(resource, "/") || strings.Contains(resource, "+}") {
		return path // a greedy pattern matches any number of segments
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

// segments counts path segments, ignoring a trailing slash.
func segments(path string) int { return strings.Count(strings.TrimSuffix(path, "/"), "/") }
