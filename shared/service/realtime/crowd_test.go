package realtime_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/credential"
	"cutroom/shared/service/realtime"
)

// A key has a share of the account's sessions, which includes those of its
// client tokens.
func TestAKeyHasItsShareOfSessions(t *testing.T) {
	w := newWorld(t, setup{limit: 5, perKey: 2})
	first := w.open("gen-latest", studio)
	w.open("gen-latest", w.mint(studio, credential.Scope{}, time.Minute))
	refused := w.dial("gen-latest", studio)
	if m := refused.next(); m.Type != "error" || m.Error != "Concurrent session limit reached." {
		t.Errorf("a third session of a key: %+v", m)
	}
	other, err := credential.NewKey("ck_studio_key_two", "studio", credential.DefaultTier, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.keys.CreateKey(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	w.open("gen-latest", "ck_studio_key_two")
	first.leave()
	w.active("studio", 2)
	w.open("gen-latest", studio)
}

// Callers without a valid key can hold only a limited number of connections,
// however slowly they read their refusals; when those end there is room again.
func TestStrangersHoldFewConnections(t *testing.T) {
	w := newWorld(t, setup{times: realtime.Times{Close: time.Minute}})
	var held []net.Conn
	status := 0
	for range 300 {
		conn, err := net.Dial("tcp", w.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		fmt.Fprintf(conn, "GET /v1/stream?model=gen-latest&api_key=ck_not_a_key HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if status = response.StatusCode; status != http.StatusSwitchingProtocols {
			if text, _ := io.ReadAll(response.Body); response.Header.Get("Retry-After") == "" {
				t.Errorf("%d %s", status, text)
			}
			break
		}
		held = append(held, conn)
	}
	if status != http.StatusServiceUnavailable || len(held) != 256 {
		t.Fatalf("%d connections are held, and the next gets %d", len(held), status)
	}
	for _, conn := range held {
		conn.Close()
	}
	for deadline := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		conn, response, err := websocket.Dial(ctx, "ws://"+w.address+"/v1/stream?model=gen-latest&api_key="+studio, nil)
		cancel()
		if err == nil {
			conn.CloseNow()
			return
		}
		if response == nil || response.StatusCode != http.StatusServiceUnavailable || time.Now().After(deadline) {
			t.Fatalf("there is still no room: %v", err)
		}
	}
}

// A client that sends too many pings is cut off.
func TestTooManyPings(t *testing.T) {
	w := newWorld(t, setup{})
	c := w.open("gen-latest", studio)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		for c.conn.Ping(ctx) == nil {
		}
	}()
	for {
		if _, _, err := c.conn.Read(ctx); err != nil {
			if ctx.Err() != nil {
				t.Error("the connection is still open")
			}
			break
		}
	}
	w.active("studio", 0)
}
