package upstream

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/platform/httpserver"
)

type scripted struct {
	net.Conn
	io.Reader
}

func (s scripted) Read(p []byte) (int, error)  { return s.Reader.Read(p) }
func (s scripted) Write(p []byte) (int, error) { return len(p), nil }
func (s scripted) SetDeadline(time.Time) error { return nil }
func (s scripted) Close() error                { return nil }

type piecewise struct{ io.Reader }

func (p piecewise) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), 7)]) }

type wireAnswer struct {
	status                        int
	contentType, retryAfter, date string
	length                        int64
	framed                        bool
	body                          string
	// broken means that the body does not end properly. kept means that the connection can be
	// reused. ahead means that bytes after the response were read.
	broken, kept, ahead bool
	// rest holds the bytes after the response.
	rest string
}

func readWire(wire io.Reader) (a wireAnswer, ok bool) {
	transport := &h1Transport{}
	conn := newH1Conn(scripted{Reader: wire}, transport)
	conn.head, conn.end = maxAnswerHeader, time.Now().Add(time.Hour)
	conn.ended = httpserver.AfterFunc(context.Background(), func() {})
	r, err := conn.receive()
	if err != nil {
		return wireAnswer{}, false
	}
	a = wireAnswer{
		status: r.Status, contentType: r.ContentType, retryAfter: r.RetryAfter, date: r.Date,
		length: r.Length, framed: r.Framed,
	}
	body, err := io.ReadAll(r.Body)
	a.body, a.broken = string(body), err != nil
	_ = r.Body.Close() // Close does not fail for this connection
	a.kept, a.ahead = len(transport.idle) > 0, conn.reader.Buffered() > 0
	if a.kept {
		transport.sweep.Stop()
	}
	if !a.broken {
		rest, _ := io.ReadAll(conn.reader) // reading from memory cannot fail
		a.rest = string(rest)
	}
	return a, true
}

func readWireByLibrary(wire io.Reader) (wireAnswer, error) {
	reader := bufio.NewReader(wire)
	for {
		r, err := http.ReadResponse(reader, &http.Request{Method: http.MethodPost})
		if err != nil {
			return wireAnswer{}, err
		}
		if r.StatusCode < 200 {
			continue
		}
		first := func(name string) string {
			for _, value := range r.Header[name] {
				if value != "" {
					return value
				}
			}
			return ""
		}
		a := wireAnswer{
			status: r.StatusCode, length: r.ContentLength, framed: r.ContentLength >= 0 || len(r.TransferEncoding) > 0,
			contentType: first("Content-Type"), retryAfter: first("Retry-After"),
		}
		if a.status != http.StatusOK {
			a.date = first("Date")
		}
		body, err := io.ReadAll(r.Body)
		a.body, a.broken = string(body), err != nil
		a.kept = !r.Close && a.framed && !a.broken && r.ProtoAtLeast(1, 1)
		if !a.broken {
			rest, _ := io.ReadAll(reader) // reading from memory cannot fail
			a.rest = string(rest)
		}
		return a, nil
	}
}

// An accepted response is read in the same way as by net/http, however its bytes arrive. A connection is kept only if
// net/http would keep it.
func FuzzWire(f *testing.F) {
	for _, seed := range wireSeeds {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, wire []byte, slowly bool) {
		read := io.Reader(bytes.NewReader(wire))
		if slowly {
			read = piecewise{read}
		}
		got, ok := readWire(read)
		if !ok {
			return
		}
		want, err := readWireByLibrary(bytes.NewReader(wire))
		if err != nil {
			if strings.Contains(err.Error(), "bad trailer key") {
				return // net/http parses the Trailer header, which is ignored here
			}
			t.Fatalf("%q is %+v, but net/http rejects it: %v", wire, got, err)
		}
		if got.kept && (!want.kept || got.broken || got.ahead) {
			t.Fatalf("%q: the connection is kept after %+v", wire, got)
		}
		got.kept, got.ahead = want.kept, want.ahead
		if got.broken {
			// An invalid body end may be detected at a different byte, depending on the buffers.
			want.broken, want.body, want.rest, got.body = true, "", "", ""
		}
		if got != want {
			t.Fatalf("%q is\n%+v, but to net/http\n%+v", wire, got, want)
		}
	})
}

// wireSeeds contains every kind of framing, and responses that different readers have interpreted differently.
var wireSeeds = []string{
	"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\ndate: d\r\nserver: x\r\ntransfer-encoding: Chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nX: y\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 429 x\nRetry-After: 5\nDate: d\n\nbody",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 204 x\r\nContent-Length: 7\r\n\r\n", "HTTP/1.1 304 x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 103 x\r\nLink: </x>\r\n\r\nHTTP/1.1 200\r\nConnection: Keep-Alive, Close\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 02\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n{}", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\v\r\n\r\n{}", "HTTP/1.1 200 OK\r\nContent-Length: 2\u00a0\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nX: y\rContent-Length: 2\r\n\r\n{}", "HTTP/1.1 200 OK\r\n\r\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nX(y): z\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 200 OK\r\n: x\r\n\r\n",
	"HTTP/1.x 200 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nContent-Type: \r\nContent-Type: a\r\nContent-Type: b\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno field\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\n\n",
	"HTTP/1.1 200 OK\r\nTrailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}
