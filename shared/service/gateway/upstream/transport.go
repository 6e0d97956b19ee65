package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/jsonedit"
)

const (
	connectTime = 5 * time.Second
	// idleConnections limits the idle connections per upstream. Servers commonly keep connections for longer than
	// idleConnectionTime, so a call rarely gets a connection that is being closed.
	idleConnections    = 1024
	idleConnectionTime = 55 * time.Second
	// maxAnswerHeader limits the size of an upstream's response header, in bytes.
	maxAnswerHeader = 64 << 10
	maxCallTime     = time.Hour
)

const versionHeader = "anthropic-version"

var ErrSilent = errors.New("the upstream was silent for too long")

// errSwitched is returned for status 101, because such a connection would not end with the call's context.
var errSwitched = errors.New("the response switches to another protocol, which was not requested")

// Request is a call to an upstream. It does not contain the caller's X-Request-Id, because servers
// disagree about the header's format.
type Request struct {
	Route catalog.Route
	Body  jsonedit.Edited
	// ContentType is empty for JSON.
	ContentType string
	// Secret may be empty.
	Secret string
	// KeyHeader is the header that contains the plain secret, or empty for Authorization. Version
	// is the value of anthropic-version, or empty.
	KeyHeader, Version string
	Stream             bool
	// Traceparent is the gateway's own traceparent, or empty.
	Traceparent string
	FirstByte   time.Duration
}

// Reply is an upstream's response. The caller must close its body.
type Reply struct {
	Status int
	// These are header fields; Encoding is Content-Encoding. Date may be empty for status 200.
	ContentType, Encoding, RetryAfter, Date string
	// Length is the body's declared length, or -1 if it is unknown.
	Length int64
	// Framed means that a complete body can be distinguished from a broken connection.
	Framed bool
	Body   Body
}

// Body is a response's body. Read returns ErrSilent if the upstream is silent for too long.
type Body interface {
	io.ReadCloser
	// Allow sets the timeout for each subsequent read. It replaces the timeout for the first byte.
	Allow(silence time.Duration)
	// Ended reports whether the body is known to have been read completely. The next Read then does not wait.
	Ended() bool
}

// transport calls a single upstream. It follows no redirects and rejects compression, which would delay chunks.
type transport interface {
	// call sends a request and returns the head of the response. The call ends with the context,
	// even while the response body is being read.
	//
	// Errors: ErrSilent; a net.Error with Timeout if the connection was not made in time.
	call(ctx context.Context, target *url.URL, request Request) (Reply, error)
	closeIdle()
}

// These header values are used for every request and must not be modified.
var (
	userAgent  = []string{"cutroom"}
	jsonType   = []string{"application/json"}
	streamType = []string{"text/event-stream"}
	// Without this field, a server may choose any coding (RFC 9110, section 12.5.3).
	identityCoding = []string{"identity"}
)

type dialer struct {
	embedded *embedded
}

// transport returns the transport for one upstream. If address is set, it replaces the URL's host.
func (d dialer) transport(base, address string, connect time.Duration) transport {
	if base == catalog.Embedded && d.embedded != nil {
		return &stdTransport{d.embedded}
	}
	if connect == 0 {
		connect = connectTime
	}
	std := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: connect}).DialContext,
		TLSHandshakeTimeout:    connect,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        idleConnectionTime,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
	if address != "" {
		// Use no proxy, because a proxy would get only the name, which stands for several servers.
		std.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
		dial := std.DialContext
		std.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, address) }
	}
	if named, ok := h1Address(base, std.Proxy); ok {
		if address == "" {
			address = named
		}
		return &h1Transport{dial: std.DialContext, address: address}
	}
	return &stdTransport{std}
}

// h1Address returns the address of a server that is called without TLS and without a proxy. ok is false for other
// servers.
func h1Address(base string, proxy func(*http.Request) (*url.URL, error)) (address string, ok bool) {
	target, err := url.Parse(base)
	if err != nil || target.Scheme != "http" {
		return "", false
	}
	if via, err := proxy(&http.Request{URL: target}); err != nil || via != nil {
		return "", false
	}
	port := target.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(target.Hostname(), port), true
}
