//go:build gpu

package main_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"cutroom/shared/engine/engineserver/engineservertest"
	"cutroom/shared/testkit/servertest"
)

// This test runs the real engine server with a real pipeline class and tiny weights.
func TestEngineProgramEditsLiveVideo(t *testing.T) {
	engine := engineservertest.StartProgram(t)
	engineservertest.AwaitLive(t, engine, "gen-2.5")
	ctx := steps(t)
	server := start(t, t.TempDir(), "CUTROOM_LIVE_ENGINE="+engine)
	address := "ws" + strings.TrimPrefix(server.URL(), "http") + "/v1/stream?model=gen-2.5&api_key=" +
		url.QueryEscape(servertest.Key)
	connection, _, err := websocket.Dial(ctx, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.CloseNow()
	connection.SetReadLimit(1 << 22)
	// next returns the next message that contains the given text, or the next frame if the text is empty.
	next := func(with string) []byte {
		t.Helper()
		for {
			kind, content, err := connection.Read(ctx)
			switch {
			case err != nil:
				t.Fatal(err)
			case kind == websocket.MessageBinary && with == "",
				kind == websocket.MessageText && with != "" && bytes.Contains(content, []byte(with)):
				return content
			case bytes.Contains(content, []byte(`"error"`)):
				t.Fatalf("the server sent %s", content)
			}
		}
	}
	say := func(kind websocket.MessageType, content []byte) {
		t.Helper()
		if err := connection.Write(ctx, kind, content); err != nil {
			t.Fatal(err)
		}
	}
	next("session_started")
	frame := redFrame(t)
	say(websocket.MessageBinary, frame)
	before := next("")
	say(websocket.MessageText, []byte(`{"type":"prompt","prompt":"a quiet winter evening"}`))
	if ack := next("prompt_ack"); !bytes.Contains(ack, []byte(`"success":true,"engine":"StableDiffusionImg2ImgPipeline"`)) {
		t.Errorf("the response to the prompt is %s", ack)
	}
	for range 3 {
		say(websocket.MessageBinary, frame)
		after := next("")
		edited, err := jpeg.Decode(bytes.NewReader(after))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(before, after) || edited.Bounds().Dx() != 64 || edited.Bounds().Dy() != 48 {
			t.Errorf("the edited frame is %v, and another than before: %v", edited.Bounds(), !bytes.Equal(before, after))
		}
	}
	// Tiny models do not have an adapter for images, so the image is rejected.
	say(websocket.MessageText, []byte(`{"type":"set_image","image_data":"`+redPixel+`"}`))
	if ack := next("set_image_ack"); !bytes.Contains(ack, []byte("The engine does not support an image for this model.")) {
		t.Errorf("the response to the image is %s", ack)
	}
}

const redPixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="

func redFrame(t *testing.T) []byte {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, 64, 48))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(color.RGBA{200, 20, 20, 255}), image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := jpeg.Encode(&out, picture, nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
