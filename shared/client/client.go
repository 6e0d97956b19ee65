// Package client calls the media editing service and the inference gateway over
// HTTP, for the command line and for programs in Go.
//
// Uploads and downloads are streams: neither is ever held in memory. A call that
// changes nothing, or that the service can tell from its own repetition, is
// repeated when the service asks for that or the connection breaks.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// silence is how long a connection may show no byte in either direction: the
	// services keep their streams alive in less, and answer other calls sooner.
	silence = 2 * time.Minute
	// longSilence is the same for an answer of a model that comes whole.
	longSilence = 15 * time.Minute
	// maxAnswer bounds an answer that is read whole, in bytes. A page of 1,000 jobs
	// is far smaller.
	maxAnswer = 32 << 20
	// expectAbove is the size of a body, in bytes, from which on the service is
	// asked first whether it takes it.
	expectAbove = 1 << 20
)

// Config is what a Client is made with.
type Config struct {
	// URL and InferenceURL are the base URLs of the two services, without /v1.
	URL, InferenceURL string
	// Key is a permanent key or a client token. It is sent to these two alone.
	Key string
	// UserAgent names the program that calls.
	UserAgent string
	// NewID makes the idempotency keys of calls that create something.
	NewID func() string
	// Backoff is the pause before the first repetition; it doubles with each.
	Backoff time.Duration
	// Repeating is told of each repetition, and of the pause before it. It may be
	// nil.
	Repeating func(err error, pause time.Duration)
}

// Client calls both services. Its methods are safe for concurrent use.
//
// Errors of all of them: [*Error], an answer that refuses; [*ConnectionError];
// the context's.
type Client struct {
	Config
	http *http.Client
	// answered tells that a service has answered before.
	answered atomic.Bool
}

// New makes a client.
//
// Errors: that a base URL is none.
func New(c Config) (*Client, error) {
	for _, base := range []*string{&c.URL, &c.InferenceURL} {
		*base = strings.TrimRight(*base, "/")
		parsed, err := url.Parse(*base)
		if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
			return nil, fmt.Errorf("%q is no URL of a server, such as https://media.example.com", *base)
		}
	}
	return &Client{Config: c, http: &http.Client{
		CheckRedirect: keepKey,
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ExpectContinueTimeout: 2 * time.Second,
			ForceAttemptHTTP2:     true,
			MaxIdleConnsPerHost:   16,
			IdleConnTimeout:       30 * time.Second,
		},
	}}, nil
}

// Close closes the connections that are kept for later calls.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// keepKey keeps the key from other hosts: a result may be fetched from where the
// service keeps it, by a signed URL. net/http itself takes only the headers away
// that it knows.
func keepKey(request *http.Request, via []*http.Request) error {
	if len(via) >= 5 {
		return errors.New("more than 5 redirects")
	}
	if request.URL.Host != via[0].URL.Host || request.URL.Scheme != via[0].URL.Scheme {
		request.Header.Del(keyHeader)
		request.Header.Del("Authorization")
	}
	return nil
}

// keyHeader carries the key to the media service (docs/contract/auth.md#keys).
const keyHeader = "x-api-key"

// idempotencyHeader names a call that creates something, so that the service knows
// its repetition.
const idempotencyHeader = "Idempotency-Key"

// call is one request.
type call struct {
	method, url string
	header      http.Header
	// body makes the body, anew for each try; nil is none.
	body *body
	// repeatable says that the call may reach the service twice and counts once.
	repeatable bool
	// silence is how long the service may say nothing, where it is not the usual.
	silence time.Duration
}

// media is a call of the media service.
func (c *Client) media(method, path string, b *body) call {
	request := call{method: method, url: c.URL + path, header: http.Header{}, body: b}
	if c.Key != "" {
		request.header.Set(keyHeader, c.Key)
	}
	request.repeatable = method != http.MethodPost
	return request
}

// creating marks a call as one that the service can tell from its repetition.
func (c *Client) creating(request call) call {
	request.header.Set(idempotencyHeader, c.NewID())
	request.repeatable = true
	return request
}

// inference is a call of the gateway.
func (c *Client) inference(method, path string, b *body) call {
	request := call{method: method, url: c.InferenceURL + path, header: http.Header{}, body: b}
	if c.Key != "" {
		request.header.Set("Authorization", "Bearer "+c.Key)
	}
	request.repeatable = method == http.MethodGet
	return request
}

// body is a request's body.
type body struct {
	contentType string
	// size is its length in bytes.
	size int64
	open func() (io.ReadCloser, error)
	// sent is told how many bytes have been sent. It may be nil.
	sent Progress
}

// Progress is told how many bytes of all have been moved. Total is -1 where it is
// not known.
type Progress func(done, total int64)

// jsonBody is a body of JSON.
func jsonBody(value any) (*body, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return &body{contentType: "application/json", size: int64(len(encoded)), open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(encoded)), nil
	}}, nil
}

// fetch sends a call and reads the whole answer, as it is.
func (c *Client) fetch(ctx context.Context, request call) (json.RawMessage, error) {
	var answer []byte
	err := c.repeat(ctx, request, func() error {
		response, err := c.once(ctx, request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
			return connectionError(ctx, request.url, err)
		}
		return nil
	})
	return answer, err
}

// get sends a call and reads the answer into value.
func (c *Client) get(ctx context.Context, request call, value any) error {
	answer, err := c.fetch(ctx, request)
	if err != nil {
		return err
	}
	return decode(answer, value)
}

func decode(answer json.RawMessage, value any) error {
	if err := json.Unmarshal(answer, value); err != nil {
		return fmt.Errorf("the answer is not the service's, is the URL right? %w", err)
	}
	return nil
}
