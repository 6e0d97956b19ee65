package realtime_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"cutroom/shared/service/realtime"
	"cutroom/shared/testkit/alloctest"
	"cutroom/shared/testkit/await"
)

// The HTTP library uses ten times a request's size in memory.
func TestAnonymousRequestsNeedLittleMemory(t *testing.T) {
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
			took := alloctest.Least(func() { w.askOnce(request) }, 0)
			if took > perByte*len(request)+more {
				t.Errorf("%s with %s: %d bytes take %d of memory", line, name, len(request), took)
			}
		}
	}
}

// askOnce sends a request on a new connection and reads until the server closes the connection.
func (w *world) askOnce(request string) {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(await.Max))
	if _, err := io.WriteString(conn, request); err != nil {
		return // the server has rejected the request and closed the connection
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
}

// The server does not decode messages of an unauthenticated client. It closes the connection even
// if the client never stops sending or does not reply to the close frame.
func TestAnonymousWebSocketNeedsLittleMemory(t *testing.T) {
	w := newWorld(t, setup{webrtc: true, times: realtime.Times{Close: 100 * time.Millisecond}})
	// Discarding an empty 6-byte frame takes up to 160 bytes, which are freed immediately.
	const most, forEmptyFrames = 512 << 10, 20 << 20
	frame := func(kind byte, size int) string {
		head := binary.BigEndian.AppendUint64([]byte{0x80 | kind, 0x80 | 127}, uint64(size))
		return string(head) + "mask" + strings.Repeat("a", size)
	}
	for name, text := range map[string]string{
		"nothing":            "",
		"a long text":        frame(1, 10<<20),
		"a picture":          frame(2, 1<<20),
		"half of a message":  frame(1, 1<<20)[:1<<10],
		"pings":              strings.Repeat("\x89\x80mask", 100_000),
		"empty continuation": "\x01\x80mask" + strings.Repeat("\x00\x80mask", 100_000),
		"junk":               strings.Repeat("\xff", 1<<20),
	} {
		sends, most := []byte(text), most
		if name == "empty continuation" {
			most = forEmptyFrames
		}
		for _, key := range []string{"", "api_key=ck_not_a_key", "api_key=ek_" + strings.Repeat("a", 40)} {
			var heard []byte
			took := alloctest.Least(func() {
				conn, err := net.Dial("tcp", w.address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(await.Max))
				_, _ = io.WriteString(conn, upgradeRequest("gen-latest&"+key))
				go func() { _, _ = conn.Write(sends) }() // fails when the server closes the connection
				heard, err = io.ReadAll(conn)
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("with %q a client that sends %s stays connected", key, name)
				}
			}, most)
			if took > most {
				t.Errorf("with %q a client that sends %s takes %d bytes of memory", key, name, took)
			}
			if !bytes.Contains(heard, []byte("Invalid API key")) {
				t.Errorf("with %q a client that sends %s receives %q", key, name, heard)
			}
		}
	}
}
