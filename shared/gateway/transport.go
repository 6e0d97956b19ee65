package gateway

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"cutroom/shared/model"
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
)

// dialer makes the connections to upstreams.
type dialer struct {
	// embedded is the model server inside this process, nil where there is none.
	embedded *memoryListener
}

// transport carries the calls of one upstream.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// transport makes what carries the calls of one upstream. It follows no
// redirects, asks for no compression, as that would hold chunks back, and
// speaks HTTP/2 where the server does and there is TLS.
func (d dialer) transport(base string, connect time.Duration) transport {
	if connect == 0 {
		connect = connectTime
	}
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: connect}).DialContext,
		TLSHandshakeTimeout:    connect,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        idleConnectionTime,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
	if base == model.Embedded && d.embedded != nil {
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return d.embedded.dial(ctx) }
		return transport
	}
	if address, ok := plainAddress(base, transport.Proxy); ok {
		return &plainTransport{Transport: transport, address: address}
	}
	return transport
}

// plainAddress gives where a server listens that is called without TLS and
// without a proxy.
func plainAddress(base string, proxy func(*http.Request) (*url.URL, error)) (address string, ok bool) {
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
