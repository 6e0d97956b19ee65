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

	"cutroom/shared/testkit/servertest"
)

// TestRealtimeSession opens a session with a client token, has a frame edited by a prompt
// and a stored image, and ends with the server.
func TestRealtimeSession(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
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

	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(server.URL(), "http")+"/v1/stream?model=gen-2.5&api_key="+
		token, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	expect(t, ctx, conn, `"session_started"`)
	if got := quota(); got != `{"limit":5,"active":1,"remaining":4}` {
		t.Errorf("with a session: %s", got)
	}
	tell := func(text string) {
		t.Helper()
		if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	tell(`{"type":"prompt","prompt":"a pencil sketch"}`)
	expect(t, ctx, conn, `{"type":"prompt_ack","prompt":"a pencil sketch","success":true,"engine":"preview",`+
		`"understood":["pencil sketch"]}`)
	tell(`{"type":"set_image","image_ref":"` + file + `"}`)
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
	if _, _, err := conn.Read(ctx); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("the end was %v", err)
	}
	<-stopped
	if strings.Contains(server.Log(), token) {
		t.Error("the log has the token in it")
	}
}

// post sends a body and returns the JSON object that comes back.
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

// expect reads the next message that is not a tick: a frame if text is empty, otherwise a
// text message with the text in it.
func expect(t *testing.T, ctx context.Context, conn *websocket.Conn, text string) []byte {
	t.Helper()
	for {
		kind, message, err := conn.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case kind == websocket.MessageText && strings.Contains(string(message), `"generation_tick"`):
			continue
		case kind == websocket.MessageText && (text == "" || !strings.Contains(string(message), text)),
			kind == websocket.MessageBinary && text != "":
			t.Fatalf("got %.300s, want %s", message, text)
		}
		return message
	}
}
