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
	// connectTime bounds connecting to an upstream unless the catalog sets it.
	connectTime = 5 * time.Second
	// idleConnections are kept to each upstream, each for at most
	// idleConnectionTime. That is shorter than servers commonly keep them, so
	// that a call seldom meets a connection that is just being closed.
	idleConnections    = 1024
	idleConnectionTime = 55 * time.Second
	// maxAnswerHeader bounds the header of an upstream's answer, in bytes.
	maxAnswerHeader = 64 << 10
	// maxCallTime bounds one call to an upstream, however much it sends.
	maxCallTime = time.Hour
)

// versionHeader is the field that says which version of Messages is spoken.
const versionHeader = "anthropic-version"

// ErrSilent is the error of an upstream that was silent for too long.
var ErrSilent = errors.New("the upstream was silent for too long")

// errSwitched is the error of an answer with status 101. What follows it is a connection,
// whose end no context brings about.
var errSwitched = errors.New("its answer switches to another protocol, which nobody asked for")

// Request is a request to an upstream.
type Request struct {
	Route catalog.Route
	Body  jsonedit.Edited
	// Secret may be empty. Nothing of the caller's header is forwarded: some
	// servers require X-Request-Id to be a UUID, and others to be unique.
	Secret string
	// KeyHeader is the field of the header that carries the secret as it is; empty
	// for Authorization. Version is the anthropic-version, or empty.
	KeyHeader, Version string
	// Stream reports whether the answer is to be Server-Sent Events.
	Stream bool
	// Traceparent is of the gateway's own trace, and may be empty.
	Traceparent string
	// FirstByte bounds the wait for the answer's first byte.
	FirstByte time.Duration
}

// Reply is an upstream's answer. Its body must be closed.
type Reply struct {
	Status int
	// ContentType, RetryAfter and Date are fields of the header. An answer with
	// status 200 may lack its Date here.
	ContentType, RetryAfter, Date string
	// Length is the declared length of the body, or -1.
	Length int64
	// Framed reports whether the end of the body proves that it is complete;
	// one that ends with its connection may have been cut off anywhere.
	Framed bool
	Body   Body
}

// Body is the body of an answer. Read fails with ErrSilent if the upstream is
// silent for too long. Close returns its connection to the pool if the body was
// read to its end.
type Body interface {
	io.ReadCloser
	// Allow bounds the silence before each byte from now on. Until it is
	// called, the time for the first byte runs on.
	Allow(silence time.Duration)
}

// transport makes the calls to one upstream. It follows no redirects, and does
// not ask for compression, which would hold chunks back.
type transport interface {
	// call sends a request to the address and returns the head of its answer.
	// The end of the context ends the call, even while the body of the answer
	// is read.
	//
	// Errors: ErrSilent; a net.Error with Timeout if the connection was not
	// made in time.
	call(ctx context.Context, target *url.URL, request Request) (Reply, error)
	// closeIdle closes the idle connections.
	closeIdle()
}

// Values of the header of every request; nobody changes them.
var (
	userAgent  = []string{"cutroom"}
	jsonType   = []string{"application/json"}
	streamType = []string{"text/event-stream"}
)

// dialer connects to upstreams.
type dialer struct {
	// embedded is the model server inside this process, or nil.
	embedded *embedded
}

// transport returns the transport for one upstream, which is at the address if one
// is given, whatever the URL names.
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
		// No proxy would go to this server rather than to another of the name.
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

// h1Address returns the address of a server that is called without TLS and
// without a proxy.
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
