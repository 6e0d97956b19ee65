package realtime_test

import (
	"encoding/base64"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"cutroom/shared/testkit/allocated"
	"cutroom/shared/testkit/patience"
)

// A request without a valid credential takes little memory from its connection to its answer,
// whatever it has: the HTTP library takes 10 times its bytes, and the server adds little.
func TestAnonymousRequests(t *testing.T) {
	const perByte, more = 12, 32 << 10
	w := newWorld(t, setup{webrtc: true, limit: 1})
	const size = 50_000
	var pairs strings.Builder
	for i := range 8_000 {
		pairs.WriteString("&" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/26/26)) + "=")
	}
	lists := base64.RawURLEncoding.EncodeToString([]byte(`{"a":[` + strings.Repeat("[],", 3_000) + `0]}`))
	const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	for name, of := range map[string]struct{ query, header string }{
		"nothing":             {"", upgrade},
		"pairs":               {pairs.String(), upgrade},
		"empty pairs":         {strings.Repeat("a&", size/2), upgrade},
		"a long key":          {"api_key=" + strings.Repeat("a", size), upgrade},
		"a key of lists":      {"api_key=" + lists + ".e30.e30", upgrade},
		"a long header key":   {"", upgrade + "x-api-key: " + strings.Repeat("a", size) + "\r\n"},
		"a list to upgrade":   {"", "Upgrade: websocket\r\nConnection: Upgrade" + strings.Repeat(",", size) + "\r\n"},
		"a list of upgrades":  {"", "Connection: Upgrade\r\nUpgrade: websocket" + strings.Repeat(",", size) + "\r\n"},
		"a list of protocols": {"", upgrade + "Sec-WebSocket-Protocol: " + strings.Repeat(",", size) + "\r\n"},
		"extensions":          {"", upgrade + "Sec-WebSocket-Extensions: " + strings.Repeat(";,", size/2) + "\r\n"},
		"a list of proxies":   {"", upgrade + "X-Forwarded-For: " + strings.Repeat(",", size) + "\r\n"},
	} {
		for _, line := range []string{
			"GET /v1/stream?", "POST /watch-stream/room_x?", "GET /v1/rooms/room_x/rtc?", "GET /v1/rooms/room_x/rtc/v1?",
		} {
			request := line + of.query + " HTTP/1.1\r\nHost: a\r\n" + of.header + "Sec-WebSocket-Version: 13\r\n" +
				"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nContent-Length: 0\r\n\r\n"
			took := allocated.By(func() { w.askOnce(request) })
			if took > uint64(perByte*len(request)+more) {
				t.Errorf("%s with %s: %d bytes take %d of memory", line, name, len(request), took)
			}
		}
	}
}

// askOnce sends a request on a new connection, and reads until its answer is complete
// or the server closes.
func (w *world) askOnce(request string) {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience.Max))
	if _, err := io.WriteString(conn, request); err != nil {
		return // the server has refused it and closed
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
}
