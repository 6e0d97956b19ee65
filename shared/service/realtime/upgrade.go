package realtime

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// sendBuffer is how many bytes the system may hold of what a client has not
// taken yet: with more, a slow client would see frames that are seconds old.
const sendBuffer = 128 << 10

// socket is an accepted WebSocket.
type socket struct {
	*websocket.Conn
	network net.Conn
	times   Times
	// turn has an element while a message is being written.
	turn chan struct{}
}

// hijacker hands over the connection below a response, and keeps it.
type hijacker struct {
	http.ResponseWriter
	network net.Conn
}

// Hijack is for the WebSocket library.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	network, buffer, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.network = network
	if tcp, ok := network.(interface{ SetWriteBuffer(bytes int) error }); ok {
		// Without it the system chooses a size.
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
	return network, buffer, nil
}

// accept upgrades a connection, whoever asks; nil when it cannot be upgraded,
// which is then answered.
func accept(w http.ResponseWriter, r *http.Request, times Times) *socket {
	h := &hijacker{ResponseWriter: w}
	conn, err := websocket.Accept(h, r, &websocket.AcceptOptions{
		// Origins are checked once it is known who calls, and refused as
		// everything is, on the open connection.
		InsecureSkipVerify: true,
		OnPingReceived:     h.answerPings(),
		// JPEG frames do not become smaller.
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil
	}
	conn.SetReadLimit(maxText)
	return &socket{conn, h.network, times, make(chan struct{}, 1)}
}

// send sends a message as JSON.
func (s *socket) send(ctx context.Context, message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return s.write(ctx, websocket.MessageText, text)
}

// write sends a message. A client that does not take it in time is cut off.
//
// The time is the connection's and not the context's, at whose end the library
// cuts the connection: to a process that was stopped right after it had sent
// something, all time would seem to be over, and the client would not be told
// what became of its session.
func (s *socket) write(ctx context.Context, kind websocket.MessageType, message []byte) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	// Both fail when the connection has ended, which the write then says.
	_ = s.network.SetWriteDeadline(time.Now().Add(s.times.Write))
	defer func() { _ = s.network.SetWriteDeadline(time.Time{}) }()
	return s.Write(ctx, kind, message)
}

// close closes the connection with the code and the reason, and waits until the
// client has agreed or its time is over.
func (s *socket) close(code websocket.StatusCode, reason string) {
	// The library's own wait does not end while a client stalls inside a
	// message.
	cut := time.AfterFunc(s.times.Close, func() { s.network.Close() })
	defer cut.Stop()
	_ = s.Close(code, reason) // fails when the client has gone
}

// refuse says why there is no session, and closes.
func (s *socket) refuse(ctx context.Context, no refusal) {
	if s.send(ctx, errorMessage{"error", no.message}) == nil {
		s.close(no.code, no.reason)
		return
	}
	_ = s.CloseNow()
}
