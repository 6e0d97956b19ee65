package realtime_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/testkit/await"
)

type client struct {
	t    *testing.T
	conn *websocket.Conn
}

type message struct {
	Type      string          `json:"type"`
	SessionID string          `json:"session_id"`
	Seconds   *int64          `json:"seconds"`
	Reason    string          `json:"reason"`
	Error     string          `json:"error"`
	Success   *bool           `json:"success"`
	Prompt    json.RawMessage `json:"prompt"`

	Engine     string   `json:"engine"`
	Understood []string `json:"understood"`
	Notice     string   `json:"notice"`

	Position int `json:"position"`
	Size     int `json:"queue_size"`

	URL   string `json:"livekit_url"`
	Token string `json:"token"`
	Room  string `json:"room_name"`

	frame  image.Image
	closed *websocket.CloseError // nil while the connection is open
}

// dial opens a session. header contains alternating names and values of header fields.
func (w *world) dial(model, key string, header ...string) *client {
	w.t.Helper()
	query := url.Values{}
	if model != "" {
		query.Set("model", model)
	}
	if key != "" {
		query.Set("api_key", key)
	}
	return w.dialWith(query, header...)
}

func (w *world) dialWith(query url.Values, header ...string) *client {
	w.t.Helper()
	fields := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		fields.Set(header[i], header[i+1])
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), await.Max)
	defer cancel()
	conn, response, err := websocket.Dial(
		ctx, "ws://"+w.address+"/v1/stream?"+query.Encode(), &websocket.DialOptions{HTTPHeader: fields},
	)
	if err != nil {
		w.t.Fatalf("the upgrade was not accepted: %v", err)
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		w.t.Fatalf("status %d", response.StatusCode)
	}
	conn.SetReadLimit(-1)
	c := &client{w.t, conn}
	w.t.Cleanup(c.drop)
	return c
}

func (w *world) open(model, key string, header ...string) *client {
	w.t.Helper()
	c, m := first(func() *client { return w.dial(model, key, header...) })
	if m.Type != "session_started" || m.SessionID == "" {
		w.t.Fatalf("no session: %+v", m)
	}
	return c
}

const tryAgain = "No session can be opened now. Try again."

// first connects a client and returns it with its first message. It retries if the store was too slow for a moment.
func first(connect func() *client) (c *client, m message) {
	for range 10 {
		c = connect()
		if m = c.next(); m.Error != tryAgain {
			break
		}
		c.drop()
	}
	return c, m
}

func (c *client) drop() { _ = c.conn.CloseNow() }

func (c *client) leave() { _ = c.conn.Close(websocket.StatusNormalClosure, "") }

// next returns the next message that is not a tick.
func (c *client) next() message {
	c.t.Helper()
	for end := time.Now().Add(await.Max); time.Now().Before(end); {
		if m := c.any(); m.Type != "generation_tick" {
			return m
		}
	}
	c.t.Fatal("only ticks arrived")
	return message{}
}

func (c *client) any() message {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), await.Max)
	defer cancel()
	kind, content, err := c.conn.Read(ctx)
	var m message
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed):
		m.closed = &closed
	case err != nil:
		c.t.Fatalf("read: %v", err)
	case kind == websocket.MessageBinary:
		if m.frame, err = jpeg.Decode(bytes.NewReader(content)); err != nil {
			c.t.Fatalf("the frame is not a JPEG: %v", err)
		}
	default:
		if err := json.Unmarshal(content, &m); err != nil {
			c.t.Fatalf("%v: %s", err, content)
		}
	}
	return m
}

func (c *client) say(text string) {
	c.t.Helper()
	c.write(websocket.MessageText, []byte(text))
}

func (c *client) show(frame []byte) {
	c.t.Helper()
	c.write(websocket.MessageBinary, frame)
}

func (c *client) write(kind websocket.MessageType, content []byte) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), await.Max)
	defer cancel()
	if err := c.conn.Write(ctx, kind, content); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

func (c *client) ack(kind, failure string) message {
	c.t.Helper()
	m := c.next()
	if m.Type != kind || m.Success == nil || *m.Success != (failure == "") || m.Error != failure {
		c.t.Errorf("got %+v, want a %s with the error %q", m, kind, failure)
	}
	return m
}

// painted sends a frame and expects it to come back in the given color.
func (c *client) painted(want color.RGBA) {
	c.t.Helper()
	c.show(plain(32, 16, color.White))
	m := c.next()
	if m.frame == nil {
		c.t.Fatalf("no frame: %+v", m)
	}
	got := color.RGBAModel.Convert(m.frame.At(16, 8)).(color.RGBA)
	if !near(got, want, 12) {
		c.t.Errorf("the frame is %v, want %v", got, want)
	}
}

// ends expects generation_ended with the reason (unless the reason is empty), and then a close frame.
func (c *client) ends(reason string, code websocket.StatusCode, text string) message {
	c.t.Helper()
	var ended message
	if reason != "" {
		if ended = c.next(); ended.Type != "generation_ended" || ended.Reason != reason || ended.Seconds == nil {
			c.t.Errorf("got %+v, want generation_ended with reason %s", ended, reason)
		}
	}
	if m := c.next(); m.closed == nil || m.closed.Code != code || m.closed.Reason != text {
		c.t.Errorf("got %+v (%v), want to be closed with %d %q", m, m.closed, code, text)
	}
	return ended
}

// upgradeRequest returns a WebSocket upgrade request. query is the model and the rest of the query.
func upgradeRequest(query string) string {
	return "GET /v1/stream?model=" + query + " HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
}

// flood sends prompts until the server disconnects the client.
func (c *client) flood() {
	for i := range 2000 {
		text := fmt.Appendf(nil, `{"type":"prompt","prompt":"%d"}`, i)
		if c.conn.Write(context.Background(), websocket.MessageText, text) != nil {
			return
		}
	}
}

func (c *client) setImage(picture []byte) {
	c.t.Helper()
	c.say(`{"type":"set_image","image_data":"` + base64.StdEncoding.EncodeToString(picture) + `"}`)
}

func near(got, want color.RGBA, most int) bool {
	for _, d := range []int{int(got.R) - int(want.R), int(got.G) - int(want.G), int(got.B) - int(want.B)} {
		if d < -most || d > most {
			return false
		}
	}
	return true
}
