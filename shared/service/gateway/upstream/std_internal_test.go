package upstream

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/testkit/await"
)

// The connection is closed immediately, without reading the rest.
func TestProtocolSwitchFails(t *testing.T) {
	closed := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer close(closed)
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		io.Copy(io.Discard, buffered)
	}))
	defer server.Close()
	by := &stdTransport{&http.Transport{}}
	_, err := by.call(t.Context(), routeURLs(server.URL)[catalog.Chat], Request{FirstByte: time.Hour})
	if !errors.Is(err, errSwitched) {
		t.Errorf("got %v", err)
	}
	await.Receive(t, "closed", closed)
}

// Many idle connections must not make one call run many times.
func TestCallWithoutResponseIsRepeatedOnce(t *testing.T) {
	for _, work := range []time.Duration{0, 200 * time.Millisecond} {
		var received atomic.Int64
		var arrived sync.WaitGroup
		arrived.Add(8)
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				arrived.Done()
				arrived.Wait() // the calls need eight connections
				return
			}
			received.Add(1)
			time.Sleep(work)
			panic(http.ErrAbortHandler)
		}))
		by := (&dialer{}).transport(server.URL, "", time.Minute)
		call := func(secret string) error {
			reply, err := by.call(t.Context(), routeURLs(server.URL)[catalog.Chat], Request{Secret: secret, FirstByte: time.Minute})
			if err == nil {
				_, err = io.Copy(io.Discard, reply.Body)
				err = errors.Join(err, reply.Body.Close())
			}
			return err
		}
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				if err := call(""); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		err := call("fails")
		if count := received.Load(); err == nil || count > 2 {
			t.Errorf("after %v of work: the call ran %d times: %v", work, count, err)
		}
		by.closeIdle()
		server.Close()
	}
}
