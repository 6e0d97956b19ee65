package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"cutroom/shared/testkit/patience"
)

// An upstream that switches protocols has failed. Its connection is closed without waiting for more
// bytes or its end.
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
	s := setup{upstreams: []*modelServer{{url: server.URL + "/v1"}}}
	if a := newWorld(t, s).chat(plain); a.status != http.StatusBadGateway {
		t.Errorf("got %d %s: %v", a.status, a.body, a.err)
	}
	patience.Receive(t, "closed", closed)
}
