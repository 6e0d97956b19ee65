package room

import (
	"bytes"
	"testing"

	"github.com/pion/rtp/codecs"
)

// libwebrtc finds reference pictures by their number, which increases by one per picture.
func TestEveryPictureHasANumber(t *testing.T) {
	p := &payloader{}
	frame := bytes.Repeat([]byte{1, 2, 3}, 20)
	for i := range 1<<15 + 2 {
		var whole []byte
		for j, payload := range p.Payload(40, frame) {
			var got codecs.VP8Packet
			content, err := got.Unmarshal(payload)
			if err != nil || len(payload) > 40 {
				t.Fatalf("picture %d: %d bytes, %v", i, len(payload), err)
			}
			if want := uint16(i & 0x7fff); got.I != 1 || got.PictureID != want {
				t.Fatalf("picture %d has the number %d (%d)", i, got.PictureID, got.I)
			}
			if (got.S == 1) != (j == 0) {
				t.Fatalf("packet %d of picture %d: start %d", j, i, got.S)
			}
			whole = append(whole, content...)
		}
		if !bytes.Equal(whole, frame) {
			t.Fatalf("picture %d is incomplete", i)
		}
	}
	if p.Payload(numberedHeader, frame) != nil || p.Payload(40, nil) != nil {
		t.Error("there are empty packets")
	}
}
