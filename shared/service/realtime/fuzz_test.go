package realtime

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/media/mediatest"
)

func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"type":"prompt","prompt":"a watercolor painting","enhance_prompt":false}`,
		`{"type":"prompt","prompt":"é\ud800\u0000","enhance_prompt":null}`,
		`{"type":"set_image","image_ref":"file_0"}`,
		`{"type":"set_image","image_data":"data:image/png;base64,iVBORw0KGgo=","image_ref":null}`,
		`{"type":"set_image","image_data":"UklGRg==","prompt":7}`,
		`{"type":"livekit_join"}`, `{"type":["prompt"]}`, `[[[[`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var message clientMessage
		if json.Unmarshal(text, &message) != nil {
			return
		}
		asked, err := message.prompt()
		if err == nil && (utf8.RuneCountInString(asked.text) > maxPrompt || asked.sent == isNull(message.Prompt)) {
			t.Errorf("a prompt of %d bytes, sent: %t", len(asked.text), asked.sent)
		}
		if err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("a prompt returned %v", err)
		}
		if _, _, err := textOf("image_ref", message.ImageRef); err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("image_ref returned %v", err)
		}
		data, err := decodeImage(message.ImageData)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("image_data returned %v", err)
			}
			return
		}
		if mime, err := checkImage(data); err == nil && mime == "" {
			t.Error("an image has no type")
		}
	})
}

func FuzzFrame(f *testing.F) {
	f.Add(mediatest.ProgressiveJPEG)
	f.Add(mediatest.ProgressiveJPEG[:200])
	f.Add([]byte("\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08\x00\x10\x00\x10\x01\x01\x11\x00\xff\xda\x00" +
		"\x08\x01\x01\x00\x00\x3f\x00"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		err := checkFrame(frame)
		if err == nil && bytes.Count(frame, []byte{0xff, 0xda}) > maxScans {
			t.Error("too many scans")
		}
		if err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("got %v", err)
		}
	})
}
