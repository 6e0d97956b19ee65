package webhookhttp_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"cutroom/shared/adapter/webhookhttp"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/testkit/alloctest"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/busytest"
	"cutroom/shared/testkit/programtest"
)

// here returns targets that allow webhooks to this machine.
func here(t *testing.T, hosts ...string) webhook.Targets {
	t.Helper()
	targets, err := webhook.ParseTargets(append(hosts, "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	return targets
}

var message = webhook.Message{ID: "msg_1", At: time.Unix(1614265330, 0), Body: []byte(`{"type":"job.completed"}`),
	Signature: "v1,abc="}

func send(t *testing.T, c webhookhttp.Config, url string) (webhook.Response, error) {
	t.Helper()
	c.Now = func() time.Time { return time.Unix(1614265330, 0) }
	ctx := await.Context(t)
	return webhookhttp.New(c).Send(ctx, url, message)
}

func TestMessageFollowsStandardWebhooks(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // the proxy must be ignored
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	answer, err := send(t, webhookhttp.Config{Targets: here(t)}, server.URL+"/hook?a=1")
	if err != nil || answer != (webhook.Response{Status: 204}) {
		t.Fatalf("the response is %+v, %v", answer, err)
	}
	if got.Method != http.MethodPost || got.URL.String() != "/hook?a=1" || string(body) != string(message.Body) ||
		got.ContentLength != int64(len(body)) {
		t.Errorf("got %s %s %q", got.Method, got.URL, body)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Webhook-Id": "msg_1", "Webhook-Timestamp": "1614265330",
		"Webhook-Signature": "v1,abc=",
		"User-Agent":        "Cutroom-Webhook/1",
	} {
		if got.Header.Get(name) != value {
			t.Errorf("%s is %q", name, got.Header.Get(name))
		}
	}
}

func TestStatusIsReturnedUnchanged(t *testing.T) {
	var followed atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case "/metadata":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		case "/busy":
			header.Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/until":
			header.Set("Retry-After", time.Unix(1614265330+90, 0).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/past":
			header.Set("Retry-After", time.Unix(0, 0).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/nonsense":
			header.Set("Retry-After", "-5")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/gone":
			w.WriteHeader(http.StatusGone)
		}
	}))
	defer server.Close()
	for path, want := range map[string]webhook.Response{
		"/": {Status: 200}, "/redirect": {Status: 307}, "/metadata": {Status: 302}, "/gone": {Status: 410}, "/nonsense": {Status: 503},
		"/busy": {Status: 429, RetryAfter: 2 * time.Minute}, "/until": {Status: 503, RetryAfter: 90 * time.Second}, "/past": {Status: 503},
	} {
		if answer, err := send(t, webhookhttp.Config{Targets: here(t)}, server.URL+path); err != nil || answer != want {
			t.Errorf("%s: %+v, %v, want %+v", path, answer, err, want)
		}
	}
	if followed.Load() {
		t.Error("a redirect was followed")
	}
}

func listen(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// Only the start of an endless response is read. Each error has a message for the account.
func TestMisbehavingReceiversAreAbandoned(t *testing.T) {
	read := func(conn net.Conn) { _, _ = http.ReadRequest(bufio.NewReader(conn)) }
	untilClosed := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	closed := listen(t, func(net.Conn) {})
	deaf, err := programtest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	const broke = "The connection broke before a response arrived."
	for _, c := range []struct {
		name, url string
		time      time.Duration
		status    int
		says      string
	}{
		{"hangs", listen(t, untilClosed), 300 * time.Millisecond, 0, "The receiver took too long."},
		{"hangs in the head", listen(t, func(conn net.Conn) {
			read(conn)
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-")
			untilClosed(conn)
		}), 300 * time.Millisecond, 0, "The receiver took too long."},
		{"hangs in the body", listen(t, func(conn net.Conn) {
			read(conn)
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			untilClosed(conn)
		}), time.Second, 200, ""}, // the header arrives long before the timeout
		{"switches protocols", listen(t, func(conn net.Conn) {
			read(conn)
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			untilClosed(conn)
		}), time.Minute, 101, ""},
		{"sends endlessly", listen(t, func(conn net.Conn) {
			read(conn)
			fmt.Fprint(conn, "HTTP/1.1 202 Accepted\r\n\r\n")
			for err := error(nil); err == nil; _, err = conn.Write(make([]byte, 4096)) {
			}
		}), time.Minute, 202, ""},
		{"has an endless header", listen(t, func(conn net.Conn) {
			read(conn)
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n")
			for err := error(nil); err == nil; _, err = fmt.Fprintf(conn, "A: %s\r\n", strings.Repeat("a", 4096)) {
			}
		}), time.Minute, 0, broke},
		{"hangs up", closed, time.Minute, 0, broke},
		{"speaks another protocol", listen(t, func(conn net.Conn) {
			read(conn)
			fmt.Fprint(conn, "220 mail.example.com ESMTP\r\n")
		}), time.Minute, 0, broke},
		{"does not exist", "http://" + deaf, time.Minute, 0, "The receiver refused the connection."},
		{"does not speak TLS", strings.Replace(closed, "http:", "https:", 1), time.Minute, 0, broke},
		{"has an unknown name", "https://nowhere.invalid/", time.Minute, 0, "The host's name was not found."},
		{"has the name of this machine", "https://localhost:1/", time.Minute, 0, "The host's address is not allowed."},
		{"is the metadata of a cloud", "http://169.254.169.254/", time.Minute, 0, "The host's address is not allowed."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			targets := here(t)
			if c.name == "has the name of this machine" {
				targets = webhook.Targets{}
			}
			resolver := newResolver(t, nil)
			if strings.Contains(c.url, "localhost") {
				resolver = nil
			}
			sender := webhookhttp.New(webhookhttp.Config{Targets: targets, Resolver: resolver, Now: time.Now})
			busytest.Try(t, c.time, func(limit time.Duration) error {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				answer, err := sender.Send(ctx, c.url, message)
				var none webhook.NoResponse
				if answer.Status != c.status || (err != nil) != (c.says != "") || err != nil && !errors.As(err, &none) ||
					string(none) != c.says {
					return fmt.Errorf("got %+v, %v", answer, err)
				}
				return nil
			})
		})
	}
}

func TestCertificateMustMatchHost(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(t.Output(), "", 0) // logs failed handshakes
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	known := &tls.Config{RootCAs: roots}
	if answer, err := send(t, webhookhttp.Config{Targets: here(t), TLS: known}, server.URL); err != nil ||
		answer.Status != 200 {
		t.Errorf("the certificate of a known root: %+v, %v", answer, err)
	}
	const invalid = "The receiver's certificate is not valid for its host."
	if _, err := send(t, webhookhttp.Config{Targets: here(t)}, server.URL); err == nil || err.Error() != invalid {
		t.Errorf("the certificate of an unknown root: %v", err)
	}
	other := strings.Replace(server.URL, "127.0.0.1", "other.test", 1)
	resolver := newResolver(t, func(int32) [4]byte { return [4]byte{127, 0, 0, 1} })
	if _, err := send(t, webhookhttp.Config{Targets: here(t), TLS: known, Resolver: resolver}, other); err == nil ||
		err.Error() != invalid {
		t.Errorf("the certificate of another host: %v", err)
	}
}

// The name first resolves to a public address and then to one of this machine's addresses.
func TestRebindingIsBlocked(t *testing.T) {
	var reached atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	resolver := newResolver(t, func(number int32) [4]byte {
		asked.Store(number)
		if number == 1 {
			return [4]byte{1, 1, 1, 1}
		}
		return [4]byte{127, 0, 0, 1}
	})
	host := "rebind.test"
	if addresses, err := resolver.LookupNetIP(t.Context(), "ip4", host); err != nil || addresses[0].String() != "1.1.1.1" {
		t.Fatalf("the name first resolves to %v, %v", addresses, err)
	}
	_, err = send(t, webhookhttp.Config{Resolver: resolver}, "http://"+host+":"+at.Port())
	if err == nil || err.Error() != "The host's address is not allowed." {
		t.Errorf("the error is %v", err)
	}
	if reached.Load() || asked.Load() < 2 {
		t.Errorf("the machine was reached: %t; the name was resolved %d times", reached.Load(), asked.Load())
	}
	// The same name and address work if the operator has allowed the host.
	if answer, err := send(t, webhookhttp.Config{Resolver: resolver, Targets: here(t, host)}, "http://"+host+":"+
		at.Port()); err != nil || answer.Status != 200 {
		t.Errorf("a listed host: %+v, %v", answer, err)
	}
}

// newResolver resolves names under .test to an address that depends on the number of the query. It knows no other
// names.
func newResolver(t *testing.T, address func(number int32) [4]byte) *net.Resolver {
	t.Helper()
	var number atomic.Int32
	return resolverOf(func(asked dnsmessage.Question) []dnsmessage.Resource {
		if address == nil || asked.Type != dnsmessage.TypeA || !strings.HasSuffix(asked.Name.String(), ".test.") {
			return nil
		}
		return []dnsmessage.Resource{record(asked.Name, &dnsmessage.AResource{A: address(number.Add(1))})}
	})
}

func record(name dnsmessage.Name, body dnsmessage.ResourceBody) dnsmessage.Resource {
	return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET}, Body: body}
}

// resolverOf responds to DNS queries over a pipe. Without records, the name does not exist.
func resolverOf(answers func(dnsmessage.Question) []dnsmessage.Resource) *net.Resolver {
	serve := func(conn net.Conn) {
		defer conn.Close()
		question, length := make([]byte, 512), make([]byte, 2)
		var m dnsmessage.Message
		if _, err := io.ReadFull(conn, length); err != nil {
			return
		}
		n, err := io.ReadFull(conn, question[:binary.BigEndian.Uint16(length)])
		if err != nil || m.Unpack(question[:n]) != nil || len(m.Questions) != 1 {
			return
		}
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if m.Answers = answers(m.Questions[0]); m.Answers == nil {
			m.RCode = dnsmessage.RCodeNameError
		}
		packed, err := m.AppendPack(make([]byte, 2))
		if err != nil {
			return
		}
		binary.BigEndian.PutUint16(packed, uint16(len(packed)-2))
		_, _ = conn.Write(packed)
	}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serve(server)
		return client, nil
	}}
}

// A DNS response of up to 64 KiB uses limited memory.
func TestHostileDNSResponsesAreRejected(t *testing.T) {
	const refused, unknown = "The host's address is not allowed.", "The host's name was not found."
	inside := [16]byte{10: 0xff, 11: 0xff, 12: 169, 13: 254, 14: 169, 15: 254}
	fill := func(n int, each func(i int) dnsmessage.Resource) (all []dnsmessage.Resource) {
		for i := range n {
			all = append(all, each(i))
		}
		return all
	}
	alias := func(from, to dnsmessage.Name) dnsmessage.Resource {
		return record(from, &dnsmessage.CNAMEResource{CNAME: to})
	}
	name := func(i int) dnsmessage.Name { return dnsmessage.MustNewName(fmt.Sprintf("n%d.test.", i)) }
	for title, test := range map[string]struct {
		answers func(dnsmessage.Question) []dnsmessage.Resource
		want    string
	}{
		"4,000 addresses of this machine": {func(q dnsmessage.Question) []dnsmessage.Resource {
			return fill(4000, func(i int) dnsmessage.Resource {
				return record(q.Name, &dnsmessage.AResource{A: [4]byte{127, 0, byte(i >> 8), byte(i)}})
			})
		}, refused},
		"2,000 addresses in disguise": {func(q dnsmessage.Question) []dnsmessage.Resource {
			return fill(2000, func(int) dnsmessage.Resource { return record(q.Name, &dnsmessage.AAAAResource{AAAA: inside}) })
		}, refused},
		"1,500 aliases in a chain": {func(q dnsmessage.Question) []dnsmessage.Resource {
			chain := fill(1500, func(i int) dnsmessage.Resource { return alias(name(i), name(i+1)) })
			return append(append(chain, alias(q.Name, name(0))), record(name(1500), &dnsmessage.AResource{A: [4]byte{10, 0, 0, 1}}))
		}, refused},
		"an alias of itself": {func(q dnsmessage.Question) []dnsmessage.Resource {
			return []dnsmessage.Resource{alias(q.Name, q.Name)}
		}, unknown},
		"60 KB of text": {func(q dnsmessage.Question) []dnsmessage.Resource {
			return fill(220, func(int) dnsmessage.Resource {
				return record(q.Name, &dnsmessage.TXTResource{TXT: []string{strings.Repeat("x", 255)}})
			})
		}, unknown},
	} {
		t.Run(title, func(t *testing.T) {
			var err error
			const most = 32 << 20 // includes the name server's memory
			took := alloctest.Least(func() {
				_, err = send(t, webhookhttp.Config{Resolver: resolverOf(test.answers)}, "http://many.test:1/")
			}, most)
			if err == nil || err.Error() != test.want || took > most {
				t.Errorf("the error is %v, after %d bytes of memory", err, took)
			}
		})
	}
}

func TestResponsesNeedLittleMemory(t *testing.T) {
	const head, most = "HTTP/1.1 200 OK\r\n", 60 << 10
	for name, answer := range map[string]string{
		"fields":       alloctest.Numbered(most, head, "a%x:\r\n", "\r\n"),
		"short fields": alloctest.Filled(most, head, "a:\n", "\r\n"),
		"early hints":  strings.Repeat("HTTP/1.1 103 A\r\na:\r\n\r\n", most/22) + head + "\r\n",
		"chunks":       head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\na\r\n", most) + "0\r\n\r\n",
		"trailers":     head + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + alloctest.Numbered(most, "", "a%x:\r\n", "\r\n"),
		"a body":       head + "\r\n" + strings.Repeat("a", 1<<20),
		"Retry-After":  alloctest.Filled(most, head+"Retry-After: ", "1", "\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(answer)
			url := listen(t, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 1<<10))
				_, _ = conn.Write(text) // the sender may have hung up
			})
			alloctest.Check(t, len(text), func() { _, _ = send(t, webhookhttp.Config{Targets: here(t)}, url) })
		})
	}
}
