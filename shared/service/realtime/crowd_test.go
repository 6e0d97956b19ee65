package realtime_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/service/realtime"
	"cutroom/shared/testkit/await"
)

// Sessions of a key's client tokens also count toward the key's limit.
func TestSessionsPerKeyAreLimited(t *testing.T) {
	w := newWorld(t, setup{limit: 5, perKey: 2})
	first := w.open("gen-latest", studio)
	w.open("gen-latest", w.mint(studio, credential.Scope{}, time.Minute))
	refused := w.dial("gen-latest", studio)
	if m := refused.next(); m.Type != "error" || m.Error != "Concurrent session limit reached." {
		t.Errorf("a third session of a key: %+v", m)
	}
	w.open("gen-latest", w.newKey("ck_studio_key_two"))
	first.leave()
	w.active("studio", 2)
	// The key's count is decremented shortly after the account's slot is free.
	await.Until(t, "the key can open a session again", func() bool {
		again := w.dial("gen-latest", studio)
		return again.next().Type == "session_started"
	})
}

// A rejected client may be slow to read the error, within the limits below.
func TestConnectionsWithoutKeyAreLimited(t *testing.T) {
	// held is how long a rejected client that does not reply is kept. most is the maximum number of such clients.
	const held, most = 5 * time.Second, 256
	w := newWorld(t, setup{times: realtime.Times{Close: time.Minute}})
	var informed []time.Time // connection times of clients that received the reason
	for i := range 300 {
		began := time.Now()
		conn, err := net.Dial("tcp", w.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(await.Max))
		io.WriteString(conn, upgradeRequest("gen-latest&api_key=ck_not_a_key"))
		reader := bufio.NewReader(conn)
		response, err := http.ReadResponse(reader, nil)
		if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("stranger %d: %v, %v", i, response, err)
		}
		if _, err := reader.ReadByte(); err == nil {
			holding := 0
			for _, since := range informed {
				if time.Since(since) < held {
					holding++
				}
			}
			if holding >= most {
				t.Fatalf("stranger %d received a reason with %d others", i, holding)
			}
			informed = append(informed, began)
		} else if errors.Is(err, os.ErrDeadlineExceeded) || len(informed) < most {
			t.Fatalf("stranger %d received no reason, and %d did: %v", i, len(informed), err)
		}
	}
	w.open("gen-latest", studio)
}

func TestPingFloodDisconnects(t *testing.T) {
	w := newWorld(t, setup{})
	c := w.open("gen-latest", studio)
	ctx := await.Context(t)
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

// Endless empty fragments of a message are neither messages nor pings.
func TestEmptyFragmentsDisconnect(t *testing.T) {
	w := newWorld(t, setup{})
	network, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	defer network.Close()
	fmt.Fprintf(network, "GET /v1/stream?model=gen-latest&api_key=%s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n\x02\x80\x00\x00\x00\x00", studio)
	go io.Copy(io.Discard, network)
	fragments := bytes.Repeat([]byte{0, 0x80, 0, 0, 0, 0}, 10_000)
	for range 1000 {
		if _, err = network.Write(fragments); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("the connection is still open")
	}
	w.active("studio", 0)
}

// Clients of an account whose slots are taken do not use up the connections that may be authenticated at a time.
func TestFullAccountDoesNotBlockOthers(t *testing.T) {
	w := newWorld(t, setup{limit: 1, webrtc: true, times: realtime.Times{Join: time.Minute}})
	w.open("gen-latest", studio)
	for range 280 { // more than the maximum number of connections being authenticated
		w.dial("gen-latest", studio)
	}
	w.open("gen-latest", rival)
}
