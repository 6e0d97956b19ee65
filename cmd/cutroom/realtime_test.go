package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/jpeg"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/servertest"
)

func TestRealtimeSessionEdits(t *testing.T) {
	t.Parallel()
	ctx := steps(t)
	server := start(t, t.TempDir())
	client := server.Client()
	quota := func() string {
		t.Helper()
		answer, err := client.Get(ctx, "/v1/realtime/quota")
		if err != nil {
			t.Fatal(err)
		}
		return string(answer.Body)
	}
	if got := quota(); got != `{"limit":5,"active":0,"remaining":5}` {
		t.Errorf("before: %s", got)
	}
	token := post(t, client, "/v1/client/tokens", "application/json",
		[]byte(`{"allowedModels":["gen-latest"]}`))["apiKey"].(string)
	body, _, contentType := servertest.Form{servertest.File("file", "picture.png", fixtures.picture)}.Encode()
	var form bytes.Buffer
	if _, err := form.ReadFrom(body); err != nil {
		t.Fatal(err)
	}
	file := post(t, client, "/v1/files", contentType, form.Bytes())["id"].(string)

	conn := openControl(ctx, t, server, "gen-2.5", token)
	expect(t, ctx, conn, `"session_started"`)
	if got := quota(); got != `{"limit":5,"active":1,"remaining":4}` {
		t.Errorf("with a session: %s", got)
	}
	send := func(text string) {
		t.Helper()
		if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	send(`{"type":"prompt","prompt":"a pencil sketch"}`)
	expect(t, ctx, conn, `{"type":"prompt_ack","prompt":"a pencil sketch","success":true,"engine":"preview",`+
		`"understood":["pencil sketch"]}`)
	send(`{"type":"set_image","image_ref":"` + file + `"}`)
	expect(t, ctx, conn, `{"type":"set_image_ack","success":true,"engine":"preview",`+
		`"understood":["pencil sketch","colors of the reference image"]}`)
	var frame bytes.Buffer
	if err := jpeg.Encode(&frame, image.NewRGBA(image.Rect(0, 0, 640, 360)), nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(ctx, websocket.MessageBinary, frame.Bytes()); err != nil {
		t.Fatal(err)
	}
	if edited, err := jpeg.DecodeConfig(bytes.NewReader(expect(t, ctx, conn, ""))); err != nil || edited.Width != 640 ||
		edited.Height != 360 {
		t.Errorf("the edited frame: %+v, %v", edited, err)
	}

	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop(t, server)
	}()
	expect(t, ctx, conn, `"server_stopping"`)
	if last := conn.next(ctx); websocket.CloseStatus(last.err) != websocket.StatusGoingAway {
		t.Errorf("the session ended with %v", last.err)
	}
	await.Receive(t, "stopped", stopped)
	if strings.Contains(server.Log(), token) {
		t.Error("the log contains the token")
	}
}

func post(t *testing.T, client *servertest.Client, path, contentType string, body []byte) map[string]any {
	t.Helper()
	answer, err := client.Call(bounded(t), "POST", path, bytes.NewReader(body), int64(len(body)), "Content-Type",
		contentType)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(answer.Body, &object); err != nil || answer.Status != 200 {
		t.Fatalf("%s: %d %s", path, answer.Status, answer.Body)
	}
	return object
}

// controlConn is a client's connection to its session. A goroutine reads from it continuously, because the client
// answers pings only while it reads, and the server drops a client that does not answer.
type controlConn struct {
	*websocket.Conn
	messages chan controlMessage
}

// controlMessage is a message from a session, or the error that ended the connection.
type controlMessage struct {
	kind    websocket.MessageType
	content []byte
	err     error
}

func openControl(ctx context.Context, t *testing.T, server *servertest.Server, model, key string) *controlConn {
	t.Helper()
	conn, _, err := websocket.Dial(ctx, socketURL(server)+"/v1/stream?model="+model+"&api_key="+key, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(-1)
	c := &controlConn{conn, make(chan controlMessage, 1000)}
	go c.read(ctx)
	return c
}

func socketURL(server *servertest.Server) string {
	return "ws" + strings.TrimPrefix(server.URL(), "http")
}

// read reads messages, except ticks, until the connection ends.
func (c *controlConn) read(ctx context.Context) {
	for {
		kind, content, err := c.Read(ctx)
		if err == nil && kind == websocket.MessageText && strings.Contains(string(content), `"generation_tick"`) {
			continue
		}
		select {
		case c.messages <- controlMessage{kind, content, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (c *controlConn) next(ctx context.Context) controlMessage {
	select {
	case message := <-c.messages:
		return message
	case <-ctx.Done():
		return controlMessage{err: ctx.Err()}
	}
}

// expect returns the next message. If the given text is empty, the message must be a frame, otherwise a text message
// that contains the text.
func expect(t *testing.T, ctx context.Context, c *controlConn, text string) []byte {
	t.Helper()
	message := c.next(ctx)
	if message.err != nil {
		t.Fatalf("the session ended before %s: %v", text, message.err)
	}
	isText := message.kind == websocket.MessageText
	if isText != (text != "") || !strings.Contains(string(message.content), text) {
		t.Fatalf("got %.300s, want %s", message.content, text)
	}
	return message.content
}
