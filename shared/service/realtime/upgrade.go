package realtime

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// sendBuffer is the system's buffer for a client that does not read, in bytes. With more, a slow
// client would see frames that are seconds old.
const sendBuffer = 128 << 10

type socket struct {
	*websocket.Conn
	network net.Conn
	times   Times
	// writing has an element while a message is being written.
	writing chan struct{}
	// reading counts the goroutines of a lobby, which outlive it.
	reading sync.WaitGroup
}

// pings pings the client until life ends. If no answer comes, it calls failed, and stops if that
// returns true.
func (s *socket) pings(life, wire context.Context, failed func() bool) {
	ticker := time.NewTicker(s.times.Ping)
	defer ticker.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-ticker.C:
		}
		// Not the life context: its end would cut the connection in the middle of a message.
		ctx, cancel := context.WithTimeout(wire, s.times.Pong)
		err := s.Ping(ctx)
		cancel()
		if err != nil && failed() {
			return
		}
	}
}

// hijacker takes over the connection of a response, and keeps it.
type hijacker struct {
	http.ResponseWriter
	network net.Conn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	network, buffer, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.network = network
	if tcp, ok := network.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
	return network, buffer, nil
}

// accept upgrades a connection from any caller. If that fails, it answers and returns nil.
func accept(w http.ResponseWriter, r *http.Request, times Times) *socket {
	h := &hijacker{ResponseWriter: w}
	conn, err := websocket.Accept(h, r, &websocket.AcceptOptions{
		// Origins are checked after authentication, and refused on the open connection.
		InsecureSkipVerify: true,
		OnPingReceived:     h.answerPings(),
		// JPEG frames cannot be compressed.
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil
	}
	conn.SetReadLimit(maxText)
	return &socket{Conn: conn, network: h.network, times: times, writing: make(chan struct{}, 1)}
}

func (s *socket) send(ctx context.Context, message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return s.write(ctx, websocket.MessageText, text)
}

// write sends a message. A client that does not read it in time is cut off.
//
// The deadline is set on the connection, because the library cuts the connection when a context
// ends. A process that was suspended right after sending would find the deadline passed, and its
// client would not learn why its session ended.
func (s *socket) write(ctx context.Context, kind websocket.MessageType, message []byte) error {
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	// Both fail if the connection has ended, which the write then reports.
	_ = s.network.SetWriteDeadline(time.Now().Add(s.times.Write))
	defer func() { _ = s.network.SetWriteDeadline(time.Time{}) }()
	return s.Write(ctx, kind, message)
}

// close closes the connection with the code and the reason, and waits until the client has answered
// or its time is over.
func (s *socket) close(code websocket.StatusCode, reason string) {
	// The library's wait does not end while a client stalls in the middle of a message.
	cut := time.AfterFunc(s.times.Close, func() { s.network.Close() })
	defer cut.Stop()
	_ = s.Close(code, reason) // fails when the client has gone
}

// refuse sends the refusal to the client and closes.
func (s *socket) refuse(ctx context.Context, no refusal) {
	if s.send(ctx, errorMessage{"error", no.message}) == nil {
		s.close(no.code, no.reason)
		return
	}
	_ = s.CloseNow()
}
