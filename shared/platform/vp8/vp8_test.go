package vp8_test

import (
	"image"
	"testing"
	"time"

	"cutroom/shared/platform/vp8"
)

const frameLength = 40 * time.Millisecond

// Frame sizes may change and may be odd.
func TestStreamSurvivesEncodingAndDecoding(t *testing.T) {
	c := open(t)
	first := c.PID()
	var got image.YCbCr
	at, took := time.Duration(0), time.Duration(0)
	for _, size := range []image.Point{{640, 360}, {320, 180}, {641, 361}, {1280, 720}, {16, 16}, {1, 33}} {
		for i, picture := range clip(t, size, 5) {
			frame, err := c.Encode(t.Context(), picture, vp8.Encoding{At: at, Bitrate: 4000})
			if err != nil {
				t.Fatal(err)
			}
			if at += frameLength; frame.Key != (i == 0) {
				t.Errorf("%v: frame %d: key is %v", size, i, frame.Key)
			}
			shown, err := c.Decode(t.Context(), frame.Data, &got)
			if err != nil || !shown || got.Rect.Size() != size {
				t.Fatalf("%v: frame %d is shown: %v, %v, %v", size, i, shown, got.Rect, err)
			}
			took += c.Took()
			if d := difference(&got, picture); d > 12 {
				t.Errorf("%v: frame %d differs by %.1f a pixel", size, i, d)
			}
		}
	}
	if took <= 0 || took > time.Minute {
		t.Errorf("decoding took %v", took)
	}
	if c.PID() != first {
		t.Error("the helper was replaced")
	}
}
