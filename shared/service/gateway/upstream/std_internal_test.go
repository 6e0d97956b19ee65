package upstream

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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
