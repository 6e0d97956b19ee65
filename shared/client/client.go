// Package client calls the media service and the inference gateway over HTTP, for the command line
// and other Go programs.
//
// Uploads and downloads are streamed, so files are never held in memory. A call is retried if the service asks
// for it or the connection breaks, provided that the call changes nothing or has an idempotency key.
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
	// silence is how long a connection may be idle. Streams send keep-alives more often than that.
	silence = 2 * time.Minute
	// longSilence replaces silence for completions that are not streamed.
	longSilence = 15 * time.Minute
	// maxAnswer limits a response that is read into memory, in bytes. A page of 1,000 jobs is far smaller.
	maxAnswer = 32 << 20
	// maxValues limits the number of values in a response, because a parsed value can take many times the memory of
	// its text.
	maxValues = 1 << 20
	// A larger body is sent only after the service accepts the request (Expect: 100-continue).
	expectAbove = 1 << 20
)

// All fields except Repeating are required.
type Config struct {
	// URL and InferenceURL are the base URLs of the two services, without /v1.
	URL, InferenceURL string
	// Key is a permanent key or a client token, or "". It is sent only to these two services.
	Key       string
	UserAgent string
	NewID     func() string
	// Backoff is the pause before the first retry. It doubles with each retry.
	Backoff time.Duration
	// Repeating is called before each retry's delay. It may be nil.
	Repeating func(err error, pause time.Duration)
}

// Client calls both services. It is safe for concurrent use.
//
// All methods return [*Error] if the service rejects the call, [*ConnectionError] if the service
// cannot be reached or the connection breaks, or the context's error.
type Client struct {
	config   Config
	http     *http.Client
	answered atomic.Bool
}

// New fails if a base URL is not an http or https URL.
func New(c Config) (*Client, error) {
	for _, base := range []*string{&c.URL, &c.InferenceURL} {
		*base = strings.TrimRight(*base, "/")
		parsed, err := url.Parse(*base)
		if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
			return nil, fmt.Errorf("%q is not a server URL such as https://media.example.com", *base)
		}
	}
	return &Client{config: c, http: &http.Client{
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

func (c *Client) Close() { c.http.CloseIdleConnections() }

// keepKey removes the key when a request is redirected to another host. net/http removes only headers that it knows.
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

// See docs/contract/auth.md#keys.
const keyHeader = "x-api-key"

const idempotencyHeader = "Idempotency-Key"

type call struct {
	method, url string
	header      http.Header
	// body may be nil. It is opened once per attempt.
	body *body
	// repeatable means that it is harmless if the service receives the call twice.
	repeatable bool
	// silence overrides the constant of the same name unless it is 0.
	silence time.Duration
}

func (c *Client) media(method, path string, b *body) call {
	request := call{method: method, url: c.config.URL + path, header: http.Header{}, body: b}
	if c.config.Key != "" {
		request.header.Set(keyHeader, c.config.Key)
	}
	request.repeatable = method != http.MethodPost
	return request
}

// creating adds an idempotency key to a call, so that the call may be retried.
func (c *Client) creating(request call) call {
	request.header.Set(idempotencyHeader, c.config.NewID())
	request.repeatable = true
	return request
}

func (c *Client) inference(method, path string, b *body) call {
	request := call{method: method, url: c.config.InferenceURL + path, header: http.Header{}, body: b}
	if c.config.Key != "" {
		request.header.Set("Authorization", "Bearer "+c.config.Key)
	}
	request.repeatable = method == http.MethodGet
	return request
}

type body struct {
	contentType string
	size        int64
	open        func() (io.ReadCloser, error)
	// sent may be nil. It is called as bytes are sent.
	sent Progress
}

// Progress is called with the number of bytes transferred so far. total is -1 if it is unknown.
type Progress func(done, total int64)

func jsonBody(value any) (*body, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return &body{contentType: "application/json", size: int64(len(encoded)), open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(encoded)), nil
	}}, nil
}

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

func (c *Client) get(ctx context.Context, request call, value any) error {
	answer, err := c.fetch(ctx, request)
	if err != nil {
		return err
	}
	return decode(answer, value)
}

func decode(answer json.RawMessage, value any) error {
	if bytes.Count(answer, []byte{','}) >= maxValues {
		return fmt.Errorf("unexpected response: it has more than %d values", maxValues)
	}
	if err := json.Unmarshal(answer, value); err != nil {
		return fmt.Errorf("unexpected response; check the URL of the service: %w", err)
	}
	return nil
}
