package upstream

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/jsonedit"
	"cutroom/shared/testkit/await"
)

func newEmbeddedCalls(t *testing.T, handle http.HandlerFunc) (e *embedded, call func(context.Context) (Reply, error)) {
	t.Helper()
	e = newEmbedded(handle, slog.New(slog.DiscardHandler))
	t.Cleanup(e.close)
	by := dialer{e}.transport(catalog.Embedded, "", 0)
	return e, func(ctx context.Context) (Reply, error) {
		return by.call(ctx, routeURLs(catalog.Embedded)[catalog.Chat], Request{
			Body: jsonedit.New([]byte(`{"n": 1}`), nil), FirstByte: time.Hour,
		})
	}
}

// Responses of any size arrive complete, with their status and all header fields that were set before the status.
func TestEmbeddedResponsesArePassedOn(t *testing.T) {
	size := 0
	_, call := newEmbeddedCalls(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" || string(body) != `{"n": 1}` {
			t.Errorf("the handler got %s %s %s", r.Method, r.URL, body)
		}
		w.Header().Set("Content-Type", "text/plain")
		if size > 0 {
			w.WriteHeader(http.StatusEarlyHints) // informational, not the final response
			w.WriteHeader(http.StatusTeapot)
			w.Header().Set("Content-Type", "too/late")
			io.WriteString(w, strings.Repeat("x", size))
		}
	})
	for size = range 100 {
		reply, err := call(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := http.StatusOK
		if size > 0 {
			want = http.StatusTeapot
		}
		body, err := io.ReadAll(reply.Body)
		if err != nil || len(body) != size || reply.Status != want || reply.ContentType != "text/plain" || !reply.Framed {
			t.Fatalf("of %d bytes: %d bytes, %+v, %v", size, len(body), reply, err)
		}
		reply.Body.Close()
	}
}

// The bytes that a handler wrote before it panicked must not look like a complete response.
func TestEmbeddedPanicEndsOnlyItsCall(t *testing.T) {
	write := ""
	_, call := newEmbeddedCalls(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, write)
		panic("a mistake")
	})
	for _, write = range []string{"part", "another"} {
		reply, err := call(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(reply.Body); string(body) != write || !errors.Is(err, errEmbedded) {
			t.Errorf("got %q, %v", body, err)
		}
		reply.Body.Close()
	}
	silent, call := newEmbeddedCalls(t, func(http.ResponseWriter, *http.Request) { panic("a mistake") })
	if _, err := call(t.Context()); !errors.Is(err, errEmbedded) {
		t.Errorf("before a response: %v", err)
	}
	silent.close() // must not wait for a reader
}

// A call ends with its context or with the server, both before and during a response.
func TestEmbeddedCallsEndWithContext(t *testing.T) {
	for name, answers := range map[string]bool{"before a response": false, "within a response": true} {
		t.Run(name, func(t *testing.T) {
			started, ended := make(chan struct{}), make(chan struct{})
			e, call := newEmbeddedCalls(t, func(w http.ResponseWriter, r *http.Request) {
				if answers {
					w.(http.Flusher).Flush()
				}
				started <- struct{}{}
				<-r.Context().Done()
				ended <- struct{}{}
			})
			called := func(ctx context.Context) <-chan error {
				failed := make(chan error, 1)
				go func() {
					reply, err := call(ctx)
					if err == nil {
						_, err = io.ReadAll(reply.Body)
						reply.Body.Close()
					}
					failed <- err
				}()
				<-started
				return failed
			}
			ctx, leave := context.WithCancel(t.Context())
			failed := called(ctx)
			leave()
			await.Receive(t, "ended", ended)
			if err := await.Receive(t, "failed", failed); !errors.Is(err, context.Canceled) {
				t.Errorf("after its caller left: %v", err)
			}
			failed = called(t.Context())
			go e.close()
			await.Receive(t, "ended", ended)
			if err := await.Receive(t, "failed", failed); !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("after the server was closed: %v", err)
			}
			if _, err := call(t.Context()); !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("on a closed server: %v", err)
			}
		})
	}
}

func TestClosingBodyEndsEmbeddedCall(t *testing.T) {
	wrote := make(chan error)
	_, call := newEmbeddedCalls(t, func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.WriteString(w, "never read")
		wrote <- err
	})
	reply, err := call(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	if err := await.Receive(t, "wrote", wrote); err == nil {
		t.Error("the handler's write succeeded")
	}
}
