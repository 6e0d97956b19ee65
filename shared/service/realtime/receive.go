package realtime

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"
)

// pace limits the rate of a client's text messages.
type pace struct {
	// messages limits all of them: a client that exceeds it loses its session.
	messages *rate.Limiter
	// changes limits those that set something: one that exceeds it is refused.
	changes *rate.Limiter
}

func newPace() pace {
	return pace{messages: rate.NewLimiter(50, 200), changes: rate.NewLimiter(10, 30)}
}

// newPings limits the pings of a client.
func newPings() *rate.Limiter { return rate.NewLimiter(5, 50) }

// receive reads what the client sends, until the connection ends. It never
// waits for the engine, so that the server always knows the client's latest
// frame.
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
		case got.err != nil:
			c.end(endedByClient)
			return
		case got.kind == websocket.MessageBinary:
			c.frames.put(got.content)
			continue
		case !c.pace.messages.Allow():
			got.release()
			c.end(endedByFlood)
			return
		}
		var message clientMessage
		// What is no UTF-8 is no JSON (RFC 8259, section 8.1), and would go out again in an
		// acknowledgement, which ends the connection at its client.
		if !utf8.Valid(got.content) || json.Unmarshal(got.content, &message) != nil {
			got.release()
			c.say(errorMessage{"error", "A text message is a JSON object with a type, and this one is not."})
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

// received is a message of a client. Whoever handles it calls release, which is never
// nil and does something for a long text only.
type received struct {
	kind    websocket.MessageType
	content []byte
	release func()
	// err is websocket.ErrMessageTooBig; errTexts, after a message that was read and
	// dropped; or one of the connection.
	err error
}

// over reports whether nothing more comes.
func (m received) over() bool { return m.err != nil && !errors.Is(m.err, errTexts) }

// inbox reads a client's messages.
type inbox struct {
	socket  *socket
	wire    context.Context
	texts   *texts
	account string
}

// next reads a message. It calls heard, unless that is nil, when the message begins.
func (i *inbox) next(heard func()) received {
	kind, reader, err := i.socket.Reader(i.wire)
	if err != nil {
		return received{release: func() {}, err: err}
	}
	if heard != nil {
		heard()
	}
	if kind == websocket.MessageText {
		text := &textReader{texts: i.texts, account: i.account, source: reader}
		content, err := io.ReadAll(text) // within the socket's limit
		if err != nil {
			text.release()
			content = nil
		}
		if errors.Is(err, errTexts) {
			if _, broken := io.Copy(io.Discard, reader); broken != nil {
				err = broken
			}
		}
		return received{kind, content, text.release, err}
	}
	content, err := io.ReadAll(io.LimitReader(reader, maxFrame+1))
	if err == nil && len(content) > maxFrame {
		err = websocket.ErrMessageTooBig
	}
	return received{kind, content, func() {}, err}
}
