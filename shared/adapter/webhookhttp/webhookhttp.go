// Package webhookhttp sends webhooks over HTTP to untrusted receivers. It connects only to
// addresses that Targets allows, even if a name's address changes.
package webhookhttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cutroom/shared/domain/webhook"
	"cutroom/shared/platform/panics"
)

const (
	dialTime = 5 * time.Second
	// maxHead is the maximum size of a response's header, in bytes. The HTTP library uses 28 times as much memory.
	maxHead = 16 << 10
	// maxBody is how much of a body is read, in bytes. Some receivers fail if nothing is read.
	maxBody = 64 << 10
)

type Config struct {
	Targets  webhook.Targets
	Resolver *net.Resolver // nil means the system's resolver
	// TLS is for receivers whose certificates the system does not trust. nil means the defaults.
	TLS *tls.Config
	Now func() time.Time
}

type Sender struct {
	client *http.Client
	now    func() time.Time
}

var _ webhook.Sender = (*Sender)(nil)

func New(c Config) *Sender {
	return &Sender{now: c.Now, client: &http.Client{
		Transport: &http.Transport{
			// Use no proxy, because the addresses that it connects to could not be checked here.
			DialContext:     dialer{c.Targets, c.Resolver}.dial,
			TLSClientConfig: c.TLS, TLSHandshakeTimeout: dialTime,
			// Keep-alives are off so that the receiver's name is resolved for every message.
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHead,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// The errors of Send include webhook.NoResponse.
func (s *Sender) Send(ctx context.Context, url string, m webhook.Message) (answer webhook.Response, err error) {
	defer panics.Error(&err) // a hostile response may cause a panic
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(m.Body))
	if err != nil {
		return webhook.Response{}, webhook.NoResponse("The URL is not valid.")
	}
	header := request.Header
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", "Cutroom-Webhook/1")
	header.Set("Webhook-Id", m.ID)
	header.Set("Webhook-Timestamp", strconv.FormatInt(m.At.Unix(), 10))
	header.Set("Webhook-Signature", m.Signature)
	response, err := s.client.Do(request)
	if err != nil {
		return webhook.Response{}, explain(err)
	}
	defer response.Body.Close()
	// After a protocol switch, the body is a connection that the context cannot end, so do not read it.
	if response.StatusCode != http.StatusSwitchingProtocols {
		// The status is valid even if the rest of the response cannot be read.
		_, _ = io.CopyN(io.Discard, response.Body, maxBody)
	}
	return webhook.Response{Status: response.StatusCode, RetryAfter: s.retryAfter(response.Header.Get("Retry-After"))}, nil
}

// retryAfter returns 0 if the header (RFC 9110, section 10.2.3) is missing or malformed.
func (s *Sender) retryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(s.now()))
	}
	return 0
}

var errRefused = errors.New("the address is not allowed")

type dialer struct {
	targets  webhook.Targets
	resolver *net.Resolver
}

// dial checks the address as it connects, so that the address cannot change between check and use.
func (d dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	judge := func(_ context.Context, _, actual string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(actual)
		if err != nil || !d.targets.AllowsAddress(host, to.Addr()) {
			return errRefused
		}
		return nil
	}
	return (&net.Dialer{Timeout: dialTime, Resolver: d.resolver, ControlContext: judge}).DialContext(ctx, network, address)
}

func explain(err error) error {
	var (
		name        *net.DNSError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		timeout     net.Error
	)
	switch {
	case errors.Is(err, errRefused):
		return webhook.NoResponse("The host's address is not allowed.")
	case errors.As(err, &timeout) && timeout.Timeout():
		return webhook.NoResponse("The receiver took too long.")
	case errors.As(err, &name):
		return webhook.NoResponse("The host's name was not found.")
	case errors.As(err, &certificate):
		return webhook.NoResponse("The receiver's certificate is not valid for its host.")
	case errors.As(err, &record), errors.As(err, &alert):
		return webhook.NoResponse("The receiver violated the TLS protocol.")
	case errors.Is(err, syscall.ECONNREFUSED):
		return webhook.NoResponse("The receiver refused the connection.")
	}
	return webhook.NoResponse("The connection broke before a response arrived.")
}
