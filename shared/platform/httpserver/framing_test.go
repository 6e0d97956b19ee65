package httpserver_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/servertest"
)

// keyed returns a handler with one route that requires a key and one that does not. If reads is
// set, the handler reads the body first.
func keyed(reads bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reads {
			io.Copy(io.Discard, r.Body)
		}
		status := http.StatusUnauthorized
		if r.URL.Path == "/healthz" {
			status = http.StatusOK
			if r.Method != http.MethodGet {
				status = http.StatusMethodNotAllowed
			}
		}
		w.Header().Set("Content-Length", "2")
		w.WriteHeader(status)
		io.WriteString(w, "{}")
	})
}

// A request that hides another is either rejected or seen as a single request by every reader.
func TestRequestSmugglingIsPrevented(t *testing.T) {
	attacks := servertest.FramingAttacks("/v1/things")
	if len(attacks) < 100 {
		t.Fatalf("%d attacks", len(attacks))
	}
	for _, reads := range []bool{true, false} {
		address, _ := start(t, httpserver.Config{Handler: keyed(reads)})
		for _, piece := range []int{0, 1, 7} {
			t.Run(fmt.Sprintf("reads %t, pieces of %d", reads, piece), func(t *testing.T) {
				t.Parallel()
				for _, attack := range attacks {
					ctx, cancel := context.WithTimeout(t.Context(), await.Max)
					if err := attack.Try(ctx, address, piece); err != nil {
						t.Errorf("%s: %v", attack.Name, err)
					}
					cancel()
				}
			})
		}
	}
}

// Bytes after the request must not be treated as another request, which a proxy would not have seen.
func TestAmbiguousLengthClosesConnection(t *testing.T) {
	served := make(chan string, 10)
	address, _ := start(t,
		httpserver.Config{NewRequestID: func() string { return "1" },
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				served <- r.URL.Path
			})})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(await.Max))
	io.WriteString(conn,
		"POST /first HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+
			"GET /second HTTP/1.1\r\nHost: a\r\n\r\n")
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	want := "HTTP/1.1 400 Bad Request\r\nx-request-id: 1\r\nContent-Type: text/plain; charset=utf-8\r\n" +
		"Connection: close\r\n\r\n400 Bad Request"
	if !strings.EqualFold(string(text), want) {
		t.Errorf("got %q", text)
	}
	if len(served) > 0 {
		t.Errorf("%s was served", await.Receive(t, "served", served))
	}
}

func TestUpgradedConnectionsAreNotInspected(t *testing.T) {
	const odd = "GET / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n folded\r\n\r\n"
	address, _ := start(t, httpserver.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
		echo := make([]byte, len(odd))
		if _, err := io.ReadFull(buffered, echo); err != nil {
			t.Error(err)
		}
		conn.Write(echo)
	})})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(await.Max))
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
	switching := make([]byte, len("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n"))
	if _, err := io.ReadFull(conn, switching); err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, odd)
	if echo, err := io.ReadAll(conn); err != nil || string(echo) != odd {
		t.Errorf("%q, %v", echo, err)
	}
}

func TestValidConnectionsStayOpen(t *testing.T) {
	address, _ := start(t, httpserver.Config{Handler: keyed(true)})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(await.Max))
	buffer := make([]byte, 4096)
	for i := range 20 {
		for _, request := range []string{
			"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789",
			"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nX: y\r\n" +
				"\r\n",
		} {
			io.WriteString(conn, request)
			if n, err := conn.Read(buffer); err != nil || n == 0 {
				t.Fatalf("round %d: %v", i, err)
			}
		}
	}
}

// The body looks like net/http's own error response, and is split into writes at different positions.
func TestBodyResemblingRejectionIsUnchanged(t *testing.T) {
	for _, look := range []string{
		"HTTP/1.1 417 X\r\n\r\n",
		"HTTP/1.1 400 X\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n",
	} {
		address, _ := start(t, httpserver.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(look)))
			w.WriteHeader(http.StatusOK)
			http.NewResponseController(w).Flush()
			io.WriteString(w, look)
		})})
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(await.Max))
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		text, err := io.ReadAll(conn)
		if err != nil || strings.Count(string(text), "\r\n\r\n"+look) != 2 || !strings.HasSuffix(string(text), look) {
			t.Errorf("%q: got %q, %v", look, text, err)
		}
	}
}

func TestUpgradeWithBodyIsServed(t *testing.T) {
	answered := make(chan httpserver.Answer, 1)
	address, _ := start(t, httpserver.Config{
		Observer: observed(answered),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "echo")
			w.WriteHeader(http.StatusSwitchingProtocols)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
		}),
	})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(await.Max))
	io.WriteString(conn,
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\nConnection: Upgrade\r\nContent-Length: 100000\r\n\r\nhalf")
	text, _ := io.ReadAll(conn)
	if !strings.HasPrefix(string(text), "HTTP/1.1 101 ") || strings.Contains(string(text), "Connection: close") {
		t.Errorf("got %q", text)
	}
	select {
	case a := <-answered:
		if a.Status != http.StatusSwitchingProtocols {
			t.Errorf("observed %+v", a)
		}
	case <-time.After(await.Max):
		t.Error("the request was not completed like others")
	}
}

type observed chan httpserver.Answer

func (o observed) Answered(a httpserver.Answer) { o <- a }
