package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"cutroom/shared/domain/catalog"
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

// errSilent is the error of an upstream that was silent for too long.
var errSilent = errors.New("the upstream was silent for too long")

// transport makes the calls to one upstream. It follows no redirects, and does
// not ask for compression, which would hold chunks back.
type transport interface {
	// call sends a request and returns the head of its answer. The end of the
	// context ends the call, even while the body of the answer is read.
	//
	// Errors: errSilent; a net.Error with Timeout if the connection was not
	// made in time.
	call(ctx context.Context, o outgoing) (reply, error)
	// closeIdle closes the idle connections.
	closeIdle()
}

// outgoing is a request to an upstream.
type outgoing struct {
	target *url.URL
	body   Edited
	// secret may be empty. Nothing of the caller's header is forwarded: some
	// servers require X-Request-Id to be a UUID, and others to be unique.
	secret string
	stream bool
	// traceparent is of the gateway's own trace, and may be empty.
	traceparent string
	// firstByte bounds the wait for the answer's first byte.
	firstByte time.Duration
}

// reply is an upstream's answer.
type reply struct {
	status int
	// contentType, retryAfter and date are fields of the header.
	contentType, retryAfter, date string
	// length is the declared length of the body, or -1.
	length int64
	// framed reports whether the end of the body proves that it is complete;
	// one that ends with its connection may have been cut off anywhere.
	framed bool
	body   replyBody
}

// replyBody is the body of an answer. Read fails with errSilent if the upstream
// is silent for too long.
type replyBody interface {
	io.ReadCloser
	// allow bounds the silence before each byte from now on. Until it is
	// called, the time for the first byte runs on.
	allow(silence time.Duration)
}

// dialer connects to upstreams.
type dialer struct {
	// embedded is the model server inside this process, or nil.
	embedded *memoryListener
}

// transport returns the transport for one upstream.
func (d dialer) transport(base string, connect time.Duration) transport {
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
	if base == catalog.Embedded && d.embedded != nil {
		std.Proxy = nil
		std.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return d.embedded.dial(ctx) }
		return &stdTransport{std}
	}
	if address, ok := h1Address(base, std.Proxy); ok {
		return &h1Transport{std: stdTransport{std}, dial: std.DialContext, address: address}
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
