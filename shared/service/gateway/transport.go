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
	// connectTime is how long the making of a connection may take where the
	// catalog says nothing.
	connectTime = 5 * time.Second
	// idleConnections are kept to each upstream, each for idleConnectionTime at
	// most: shorter than servers commonly do, so that a call seldom meets a
	// connection that is just being closed.
	idleConnections    = 1024
	idleConnectionTime = 55 * time.Second
	// maxAnswerHeader bounds the header of an upstream's answer, in bytes.
	maxAnswerHeader = 64 << 10
	// longestCall bounds one call of an upstream, however lively it is.
	maxCallTime = time.Hour
)

// errSilent is the error of an upstream that was silent for too long.
var errSilent = errors.New("the upstream was silent for too long")

// transport carries the calls of one upstream. It follows no redirects, and asks
// for no compression, as that would hold chunks back.
type transport interface {
	// call sends a request and gives the head of its answer. The end of the
	// context ends the call, the reading of the answer's body included.
	//
	// Errors: errSilent; a net.Error with Timeout where no connection came about
	// in time.
	call(ctx context.Context, o outgoing) (reply, error)
	// closeIdle closes the connections that no call uses.
	closeIdle()
}

// outgoing is a request for an upstream.
type outgoing struct {
	target *url.URL
	body   Edited
	// secret is left out where it is empty. Nothing of the caller's header goes
	// out: a caller's X-Request-Id would have to be a UUID for some servers, and
	// unique among all calls for others.
	secret string
	stream bool
	// traceparent is left out where it is empty: it is of the gateway's own trace.
	traceparent string
	// firstByte is how long the answer may be in coming.
	firstByte time.Duration
}

// reply is what an upstream answers.
type reply struct {
	status int
	// contentType, retryAfter and date are fields of the header.
	contentType, retryAfter, date string
	// length is the body's, -1 where it was not declared.
	length int64
	// framed reports whether the end of the body tells that it is whole; one that
	// ends with its connection may have been cut off anywhere.
	framed bool
	body   replyBody
}

// replyBody is the body of an answer. Its reading gives errSilent when the
// upstream is silent for too long.
type replyBody interface {
	io.ReadCloser
	// allow bounds the silence before each byte from now on. Before it is called
	// the time for the first byte runs on.
	allow(silence time.Duration)
}

// dialer makes the connections to upstreams.
type dialer struct {
	// embedded is the model server inside this process, nil where there is none.
	embedded *memoryListener
}

// transport makes what carries the calls of one upstream.
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

// h1Address gives where a server listens that is called without TLS and
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
