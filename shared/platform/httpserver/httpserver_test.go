package httpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/busytest"
)

// start starts a server with the loop, unless the setting turns it off.
func start(t *testing.T, c httpserver.Config) (address string, server *httpserver.Server) {
	t.Helper()
	c.Loop = os.Getenv("CUTROOM_NET_HTTP") == ""
	return startAs(t, c)
}

func startAs(t *testing.T, c httpserver.Config) (address string, server *httpserver.Server) {
	t.Helper()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server = httpserver.New(c)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		server.Shutdown(ended)
		if err := await.Receive(t, "served", served); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return listener.Addr().String(), server
}

// log collects log lines. A request's line is written slightly after the client sees the response.
type log struct {
	mu    sync.Mutex
	bytes bytes.Buffer
	line  chan struct{}
}

func newLog() *log { return &log{line: make(chan struct{}, 100)} }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line <- struct{}{}
	return l.bytes.Write(p)
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

func (l *log) wait(t *testing.T, lines int) string {
	t.Helper()
	for range lines {
		select {
		case <-l.line:
		case <-time.After(await.Max):
			t.Fatal("the line is not in the log")
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes.String()
}

func TestEachRequestHasAnID(t *testing.T) {
	seen := make(chan string, 1)
	address, _ := start(t, httpserver.Config{
		NewRequestID: func() string { return "new" },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen <- httpserver.RequestID(r.Context())
			if r.URL.Path == "/error" {
				w.WriteHeader(http.StatusTeapot)
			}
		}),
	})
	for _, c := range []struct{ name, path, sent, want string }{
		{"none is sent", "/", "", "new"},
		{"a valid one is kept", "/", "my-id 1~", "my-id 1~"},
		{"on an error too", "/error", "my-id", "my-id"},
		{"128 characters", "/", strings.Repeat("x", 128), strings.Repeat("x", 128)},
		{"129 characters", "/", strings.Repeat("x", 129), "new"},
		{"not ASCII", "/", "idé", "new"},
		{"a control character", "/", "a\tb", "new"},
	} {
		request, _ := http.NewRequest("GET", "http://"+address+c.path, nil)
		if c.sent != "" {
			request.Header.Set("x-request-id", c.sent)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got, inContext := answer.Header.Get("x-request-id"), await.Receive(t, "seen", seen); got != c.want ||
			inContext != c.want {
			t.Errorf("%s: %q in the response and %q in the context, want %q", c.name, got, inContext, c.want)
		}
	}
}

func TestGeneratedRequestIDsDiffer(t *testing.T) {
	address, _ := start(t, httpserver.Config{Handler: http.NotFoundHandler()})
	ids := map[string]bool{}
	for range 3 {
		answer, err := http.Get("http://" + address)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		ids[answer.Header.Get("x-request-id")] = true
	}
	if len(ids) != 3 || ids[""] {
		t.Errorf("the ids of three requests: %v", ids)
	}
}

func TestAccessLogHasNoSecrets(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /things/{id}", func(w http.ResponseWriter, r *http.Request) {
		httpserver.SetAccount(r.Context(), "studio")
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "a secret answer")
	})
	log := newLog()
	address, _ := start(t, httpserver.Config{Handler: mux, Logger: log.logger()})
	request, _ := http.NewRequest("POST", "http://"+address+"/things/hidden?api_key=hidden",
		strings.NewReader("a hidden body"))
	request.Header.Set("x-api-key", "hidden")
	request.Header.Set("x-request-id", "r1")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()

	text := log.wait(t, 1)
	var line map[string]any
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for key, want := range map[string]any{
		"request_id": "r1", "account": "studio", "method": "POST", "route": "POST /things/{id}",
		"status": 202.0, "bytes_in": 13.0, "bytes_out": 15.0, "aborted": false,
	} {
		if line[key] != want {
			t.Errorf("%s is %v, want %v", key, line[key], want)
		}
	}
	for _, word := range []string{"hidden", "secret", httpserver.RefusalKey} {
		if strings.Contains(text, word) {
			t.Errorf("%q is in the log: %s", word, text)
		}
	}
}

func TestAccessLogOmitsProbes(t *testing.T) {
	mux := http.NewServeMux()
	status := http.StatusOK
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	log := newLog()
	address, _ := start(t, httpserver.Config{Handler: mux, Logger: log.logger()})
	for _, status = range []int{http.StatusOK, http.StatusServiceUnavailable} {
		answer, err := http.Get("http://" + address + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	if text := log.wait(t, 1); strings.Contains(text, `"status":200`) || !strings.Contains(text, `"status":503`) {
		t.Errorf("the log has %s", text)
	}
}

func TestQuietAccessLogOmitsReads(t *testing.T) {
	log := newLog()
	address, _ := start(t, httpserver.Config{
		Logger: log.logger(), QuietReads: true,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/gone" {
				w.WriteHeader(http.StatusNotFound)
			}
		}),
	})
	for _, request := range []string{"GET /page", "HEAD /page", "GET /gone", "POST /page"} {
		method, path, _ := strings.Cut(request, " ")
		asked, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(asked)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	text := log.wait(t, 2)
	if strings.Count(text, "\n") != 2 || !strings.Contains(text, `"status":404`) || !strings.Contains(text, `"POST"`) {
		t.Errorf("the log has %s", text)
	}
}

func TestAccessLogShowsRefusalReason(t *testing.T) {
	log := newLog()
	address, _ := start(t, httpserver.Config{Logger: log.logger(),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			httpserver.SetRefusal(r.Context(), "asleep")
			w.WriteHeader(http.StatusServiceUnavailable)
		})})
	answer, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if text := log.wait(t, 1); !strings.Contains(text, `"refusal":"asleep"`) {
		t.Errorf("the log has %s", text)
	}
}

func TestPanicGetsConfiguredResponse(t *testing.T) {
	log := newLog()
	address, _ := start(t, httpserver.Config{
		Logger: log.logger(),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Left-Over", "1")
			panic("oh")
		}),
		OnPanic: func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, `{"detail":"sorry"}`)
		},
	})
	answer, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != 500 || string(body) != `{"detail":"sorry"}` || answer.Header.Get("x-request-id") == "" ||
		answer.Header.Get("X-Left-Over") != "" {
		t.Errorf("got %d %s %v", answer.StatusCode, body, answer.Header)
	}
	if text := log.wait(t, 2); !strings.Contains(text, "httpserver_test.go") || !strings.Contains(text, `"panic":"oh"`) {
		t.Errorf("the log does not show where it panicked: %s", text)
	}
}

func TestPanicAbortsStartedResponse(t *testing.T) {
	address, _ := start(t, httpserver.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		panic("oh")
	})})
	answer, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("the client accepted %q as the complete response", body)
	}
}

func TestStalledPeerIsDisconnected(t *testing.T) {
	result := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, err := io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusRequestTimeout)
			result <- err
			return
		}
		var err error
		for chunk := make([]byte, 1<<20); err == nil; {
			_, err = w.Write(chunk)
		}
		result <- err
	})
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nhalf",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		busytest.Try(t, 500*time.Millisecond, func(stall time.Duration) error {
			address, _ := start(t, httpserver.Config{Stall: stall, Handler: handler})
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			defer conn.Close()
			io.WriteString(conn, request)
			status := make([]byte, len("HTTP/1.1 408 "))
			if _, err := io.ReadFull(conn, status); err != nil {
				return fmt.Errorf("%.10s…: the header was not in time: %w", request, err)
			}
			if strings.HasPrefix(request, "POST") && string(status) != "HTTP/1.1 408 " {
				t.Errorf("got %q, want the handler's 408", status)
			}
			if err := <-result; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%.10s…: got %v, want a timeout", request, err)
			}
			return nil
		})
	}
}

// A handler may write more at once than a slow peer can read within the stall time.
func TestSlowPeerReceivesLargeWrite(t *testing.T) {
	busytest.Try(t, 200*time.Millisecond, func(stall time.Duration) error {
		response := make([]byte, 8<<20)
		address, _ := start(t, httpserver.Config{Stall: stall, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(response)
		})})
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		received := 0
		for began := time.Now(); ; time.Sleep(stall / 20) { // a write of 8 MiB takes at least 20 times the stall time
			n, err := io.CopyN(io.Discard, conn, 20<<10)
			if received += int(n); err != nil {
				if received < len(response) {
					return fmt.Errorf("the peer has received %d bytes after %v", received, time.Since(began))
				}
				return nil
			}
		}
	})
}

// The stall timeout of an upload must not interrupt the work that follows it.
func TestStallTimeDoesNotLimitHandler(t *testing.T) {
	busytest.Try(t, 20*time.Millisecond, func(stall time.Duration) error {
		address, _ := start(t,
			httpserver.Config{Stall: stall, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				select {
				case <-r.Context().Done():
					w.WriteHeader(http.StatusInternalServerError)
				case <-time.After(5 * stall):
				}
			})})
		answer, err := http.Post("http://"+address, "text/plain", strings.NewReader("x"))
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New("the request's context ended while it was being handled")
		}
		return nil
	})
}

// A Lambda function gets requests without a connection, so there are no deadlines.
func TestHandlerWorksWithoutConnection(t *testing.T) {
	log := newLog()
	handler := httpserver.Handler(httpserver.Config{Handler: reject, Logger: log.logger()})
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", 1<<20)))
	request.Header.Set("x-request-id", "r1")
	handler.ServeHTTP(recorder, request)
	if recorder.Code != 401 || recorder.Body.String() != `{"detail":"no"}` ||
		recorder.Header().Get("x-request-id") != "r1" || recorder.Header().Get("Connection") != "" {
		t.Errorf("got %d %s %v", recorder.Code, recorder.Body, recorder.Header())
	}
	if text := log.wait(t, 1); !strings.Contains(text, `"status":401`) {
		t.Errorf("the log contains %s", text)
	}
}

// requested sends a request and returns a channel for the response's body and the error.
func requested(address string) <-chan string {
	got := make(chan string, 1)
	go func() {
		answer, err := http.Get("http://" + address)
		if err != nil {
			got <- err.Error()
			return
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		got <- fmt.Sprintf("%s: %v", body, err)
	}()
	return got
}

func TestShutdownLetsRequestsFinish(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	address, server := start(t, httpserver.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-leave
		io.WriteString(w, "done")
	})})
	got := requested(address)
	await.Receive(t, "entered", entered)
	stopped := make(chan error, 1)
	go func() { stopped <- server.Shutdown(context.Background()) }()
	for { // until the listener is closed
		conn, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		conn.Close()
	}
	close(leave)
	if err := await.Receive(t, "stopped", stopped); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if body := await.Receive(t, "got", got); body != "done: <nil>" {
		t.Errorf("the request in progress got %q", body)
	}
}

// A handler that notices the shutdown can still send a complete response.
func TestShutdownCutsOffSlowRequests(t *testing.T) {
	entered, returned := make(chan struct{}), make(chan struct{})
	address, server := start(t, httpserver.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(returned)
		io.WriteString(w, "begun")
		http.NewResponseController(w).Flush()
		close(entered)
		<-r.Context().Done()
		fmt.Fprintf(w, ", cut off as %v", context.Cause(r.Context()))
	})})
	got := requested(address)
	await.Receive(t, "entered", entered)
	ended, end := context.WithCancel(context.Background())
	end()
	if err := server.Shutdown(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("shutdown: %v, want an error because requests were cut off", err)
	}
	select {
	case <-returned:
	default:
		t.Error("shutdown returned before the handler did")
	}
	want := fmt.Sprintf("begun, cut off as %v: <nil>", httpserver.ErrStopping)
	if text := await.Receive(t, "got", got); text != want {
		t.Errorf("the client got %q, want %q", text, want)
	}
}
