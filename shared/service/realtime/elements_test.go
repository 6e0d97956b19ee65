package realtime

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/alloctest"
)

func TestTextMessagesNeedLittleMemory(t *testing.T) {
	const size = 1 << 20 // the maximum is 14 MB
	repeated := func(element string) string { return strings.Repeat(element, size/len(element)) }
	for name, text := range map[string]string{
		"members":           `{` + repeated(`"a":0,`) + `"type":"prompt"}`,
		"prompts":           `{` + repeated(`"prompt":0,`) + `"type":"prompt"}`,
		"a list":            `{"type":"prompt","prompt":[` + repeated(`[],`) + `0]}`,
		"a text":            `{"type":"prompt","prompt":"` + repeated(`\u0000`) + `"}`,
		"capabilities":      `{"type":"livekit_join","client_capabilities":{` + repeated(`"a":[],`) + `"a":0}}`,
		"an image":          `{"type":"set_image","image_data":"` + repeated(`\u0041`) + `"}`,
		"an image of lines": `{"type":"set_image","image_data":"` + repeated(`\n`) + `"}`,
		"a list of lists":   repeated(`[`),
		"spaces":            repeated(` `),
	} {
		t.Run(name, func(t *testing.T) {
			alloctest.Check(t, len(text), func() {
				content := []byte(text)
				_ = received{kind: websocket.MessageText, content: content}.asksToWait()
				var message clientMessage
				if json.Unmarshal(content, &message) != nil {
					return
				}
				_, _ = message.prompt()
				if data, err := decodeImage(message.ImageData); err == nil {
					_, _ = checkImage(data)
				}
				_, _ = json.Marshal(promptAck{Type: "prompt_ack", Prompt: message.Prompt})
			})
		})
	}
}

func TestLargeFramesAreNotDecoded(t *testing.T) {
	head := func(width, height uint16, kind byte, sampling string) []byte {
		frame := append([]byte{0xff, 0xd8, 0xff, kind, 0, 17, 8}, binary.BigEndian.AppendUint16(nil, height)...)
		frame = append(binary.BigEndian.AppendUint16(frame, width), 3)
		for i, each := range []byte(sampling) {
			frame = append(frame, byte(i+1), each, 0)
		}
		return append(frame, 0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0)
	}
	for name, frame := range map[string][]byte{
		"65535x65535":          head(65535, 65535, 0xc0, "\x22\x11\x11"),
		"65535x1, progressive": head(65535, 40, 0xc2, "\x44\x11\x11"),
		"scans":                append(head(16, 16, 0xc0, "\x11\x11\x11"), bytes.Repeat([]byte{0xff, 0xda}, 1000)...),
	} {
		took := alloctest.Least(func() {
			if picture, err := decodeFrame(frame); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s is decoded: %v, %v", name, picture.Rect, err)
			}
		}, 0)
		if took > 4<<10 {
			t.Errorf("%s takes %d bytes of memory", name, took)
		}
	}
}
