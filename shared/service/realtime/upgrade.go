package realtime

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/platform/clock"
	"cutroom/shared/platform/httpserver"
)

// sendBuffer is the size of the socket's send buffer, in bytes. In a larger buffer, frames would wait for seconds.
const sendBuffer = 128 << 10

// maxOverhead limits the bytes that are not content, and overheadRate those that are added each second. The rest of a
// text that is too large counts, so that the client gets the reason for the end.
const maxOverhead, overheadRate = maxText + 256<<10, 20_000

type socket struct {
	*websocket.Conn
	network *httpserver.OverheadConn
	times   Times
	// writing contains an element while a message is being written.
	writing chan struct{}
	// reading counts a lobby's goroutines, which may outlive the lobby.
	reading sync.WaitGroup
}

// pings pings the client until the context life ends, or until a ping fails and failed() returns true.
func (s *socket) pings(life, wire context.Context, failed func() bool) {
	for clock.Wait(life, s.times.Ping) {
		// Use the context wire. A context that ends with life would close the connection in the middle of a message.
		ctx, cancel := context.WithTimeout(wire, s.times.Pong)
		err := s.Ping(ctx)
		cancel()
		if err != nil && failed() {
			return
		}
	}
}

// accept upgrades a request. If that fails, it sends an error response and returns nil.
func accept(w http.ResponseWriter, r *http.Request, times Times) *socket {
	upgrade := &httpserver.OverheadWriter{ResponseWriter: w, Burst: maxOverhead, PerSecond: overheadRate}
	conn, err := websocket.Accept(upgrade, r, &websocket.AcceptOptions{
		// Origins are checked after authentication. A wrong origin is rejected on the open connection.
		InsecureSkipVerify: true,
		OnPingReceived:     limitPings(upgrade),
		// Compression would not make JPEG frames smaller.
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil
	}
	_ = upgrade.SetWriteBuffer(sendBuffer) // without it, only the delay of frames grows
	conn.SetReadLimit(maxText)
	return &socket{Conn: conn, network: upgrade.Conn, times: times, writing: make(chan struct{}, 1)}
}

func (s *socket) send(ctx context.Context, message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return s.write(ctx, websocket.MessageText, text)
}

// write sends a message. A client that does not read it in time is disconnected.
//
// The deadline is set on the connection, because the library closes a connection whose context
// ends. If the process was suspended, the client would then not receive the reason for the end.
func (s *socket) write(ctx context.Context, kind websocket.MessageType, message []byte) error {
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	// These calls fail only if the connection is closed. Then the write fails too.
	_ = s.network.SetWriteDeadline(time.Now().Add(s.times.Write))
	defer func() { _ = s.network.SetWriteDeadline(time.Time{}) }()
	return s.Write(ctx, kind, message)
}

// close closes the connection and waits up to times.Close for the client's reply.
func (s *socket) close(code websocket.StatusCode, reason string) {
	// If a client stalls in the middle of a message, the library would wait forever.
	cut := time.AfterFunc(s.times.Close, func() { s.network.Close() })
	defer cut.Stop()
	_ = s.Close(code, reason) // fails if the client has disconnected
}

func (s *socket) reject(ctx context.Context, no rejection) {
	if s.send(ctx, errorMessage{"error", no.message}) == nil {
		s.close(no.code, no.reason)
		return
	}
	_ = s.CloseNow()
}
