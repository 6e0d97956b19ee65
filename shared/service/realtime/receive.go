package realtime

import (
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
		kind, content, release, err := c.next()
		switch {
		case errors.Is(err, errTexts):
			c.say(errorMessage{"error", "The server is busy. Try again."})
			continue
		case errors.Is(err, websocket.ErrMessageTooBig):
			c.end(endedBySize)
			return
		case err != nil:
			c.end(endedByClient)
			return
		case kind == websocket.MessageBinary:
			c.frames.put(content)
			continue
		case !c.pace.messages.Allow():
			release()
			c.end(endedByFlood)
			return
		}
		var message clientMessage
		// What is no UTF-8 is no JSON (RFC 8259, section 8.1), and would go out again in an
		// acknowledgement, which ends the connection at its client.
		if !utf8.Valid(content) || json.Unmarshal(content, &message) != nil {
			release()
			c.say(errorMessage{"error", "A text message is a JSON object with a type, and this one is not."})
			continue
		}
		message.release = release
		select {
		case c.controls <- message:
		case <-c.life.Done():
			release()
		}
	}
}

// next reads a message. The caller calls release once it has handled a text.
//
// Errors: websocket.ErrMessageTooBig; errTexts, after a message that was read and
// dropped; those of the connection.
func (c *connection) next() (kind websocket.MessageType, content []byte, release func(), err error) {
	kind, reader, err := c.socket.Reader(c.wire)
	if err != nil {
		return 0, nil, nil, err
	}
	c.heard()
	if kind == websocket.MessageText {
		text := &textReader{texts: c.server.texts, account: c.admission.who.Account(), source: reader}
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
		return kind, content, text.release, err
	}
	content, err = io.ReadAll(io.LimitReader(reader, maxFrame+1))
	if err == nil && len(content) > maxFrame {
		err = websocket.ErrMessageTooBig
	}
	return kind, content, nil, err
}
