package realtime

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"
)

type pace struct {
	// messages limits the rate of all messages. A client that exceeds it loses its session.
	messages *rate.Limiter
	// changes limits the rate of messages that change something. Excess messages are rejected.
	changes *rate.Limiter
}

func newPace() pace {
	return pace{messages: rate.NewLimiter(50, 200), changes: rate.NewLimiter(10, 30)}
}

func newPings() *rate.Limiter { return rate.NewLimiter(5, 50) }

// receive reads the client's messages. It never waits for the engine.
func (c *connection) receive() {
	for {
		got := c.next()
		switch {
		case errors.Is(got.err, errTexts):
			c.say(errorMessage{"error", "The server is busy. Try again."})
			continue
		case errors.Is(got.err, websocket.ErrMessageTooBig):
			c.end(endedBySize)
			return
		case errors.Is(got.err, os.ErrDeadlineExceeded):
			c.end(endedByStall)
			return
		case got.err != nil:
			c.end(endedByClient)
			return
		case got.kind == websocket.MessageBinary:
			c.frames.put(got)
			continue
		case !c.pace.messages.Allow():
			got.release()
			c.end(endedByFlood)
			return
		}
		var message clientMessage
		// Invalid UTF-8 in the acknowledgment would make the client close its connection.
		if !utf8.Valid(got.content) || json.Unmarshal(got.content, &message) != nil {
			got.release()
			c.say(errorMessage{"error", "A text message must be a JSON object with a type."})
			continue
		}
		message.release = got.release
		select {
		case c.controls <- message:
		case <-c.life.Done():
			got.release()
		}
	}
}

// received is a message from the client. release is never nil and must be called.
type received struct {
	kind    websocket.MessageType
	content []byte
	release func()
	// err is websocket.ErrMessageTooBig, errTexts if the message was read and dropped, os.ErrDeadlineExceeded if it
	// did not arrive in time, or a connection error.
	err error
}

func (m received) drop() { m.release() }

func (m received) over() bool { return m.err != nil && !errors.Is(m.err, errTexts) }

type contentReader struct {
	io.Reader
	socket *socket
}

func (r contentReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.socket.network.AddContent(n)
	return n, err
}

type inbox struct {
	socket  *socket
	wire    context.Context
	texts   *texts
	account string
}

// next reads a message. If heard is not nil, it is called when the message starts.
func (i *inbox) next(heard func()) received {
	kind, reader, err := i.socket.Reader(i.wire)
	if err != nil {
		return received{release: func() {}, err: err}
	}
	reader = contentReader{reader, i.socket}
	if heard != nil {
		heard()
	}
	// These calls fail only if the connection is closed. Then the read fails too.
	_ = i.socket.network.SetReadDeadline(time.Now().Add(i.socket.times.Message))
	defer func() { _ = i.socket.network.SetReadDeadline(time.Time{}) }()
	counted := &textReader{texts: i.texts, account: i.account, source: reader}
	reader = counted
	if kind == websocket.MessageBinary {
		reader = io.LimitReader(counted, maxFrame+1)
	}
	content, err := io.ReadAll(reader) // the socket limits the size
	if err == nil && kind == websocket.MessageBinary && len(content) > maxFrame {
		err = websocket.ErrMessageTooBig
	}
	if err != nil {
		counted.release()
		content = nil
	}
	if errors.Is(err, errTexts) {
		if _, broken := io.Copy(io.Discard, counted.source); broken != nil {
			err = broken
		}
	}
	return received{kind, content, counted.release, err}
}
