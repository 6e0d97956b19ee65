package libvpx_test

import (
	"errors"
	"image"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"cutroom/shared/platform/vp8/libvpx"
)

func TestUnusableLibraryIsExplained(t *testing.T) {
	for path, want := range map[string]string{
		"/nonexistent/libvpx.so.7": "cannot load libvpx", "libdl.so.2": "built without VP8",
	} {
		if _, err := libvpx.Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// A new bitrate takes effect immediately, and key frames are made only on request.
func TestEncoderFollowsSettings(t *testing.T) {
	l, err := libvpx.Load("")
	if err != nil {
		t.Fatal(err)
	}
	encoder := libvpx.NewEncoder(l)
	defer encoder.Close()
	random := rand.New(rand.NewPCG(1, 2))
	var picture image.YCbCr
	libvpx.Resize(&picture, image.Pt(320, 180))
	const second = 25
	for i, bitrate := range []int{2000, 200, 1000} {
		size := 0
		for frame := range 3 * second {
			for y := range picture.Y { // moving noise, which uses all of the bitrate
				picture.Y[y] = byte(60 + (y+frame*3)%320/4 + random.IntN(40))
			}
			at := time.Duration(i*3*second+frame) * time.Second / second
			data, err := encoder.Encode(&picture, libvpx.Encoding{At: at, Bitrate: bitrate, Key: frame == second/2})
			if err != nil {
				t.Fatal(err)
			}
			if key := data[0]&1 == 0; key != (frame == second/2 || i == 0 && frame == 0) {
				t.Errorf("frame %d at %d kbit/s: a key frame is %v", frame, bitrate, key)
			}
			if frame >= 2*second { // once the encoder has adapted
				size += len(data)
			}
		}
		if got := size * 8 / 1000; got < bitrate/2 || got > bitrate*3/2 {
			t.Errorf("got %[2]d kbit/s, want %[1]d", bitrate, got)
		}
	}
}

func TestDecoderRecoversAtKeyFrame(t *testing.T) {
	l, err := libvpx.Load("")
	if err != nil {
		t.Fatal(err)
	}
	encoder, decoder := libvpx.NewEncoder(l), libvpx.NewDecoder(l)
	defer encoder.Close()
	defer decoder.Close()
	var sent, got image.YCbCr
	libvpx.Resize(&sent, image.Pt(64, 48))
	key, err := encoder.Encode(&sent, libvpx.Encoding{Bitrate: 500, Key: true})
	if err != nil {
		t.Fatal(err)
	}
	to := func(size image.Point) *image.YCbCr {
		libvpx.Resize(&got, size)
		return &got
	}
	for _, broken := range [][]byte{nil, key[:8], []byte("no frame at all")} {
		if _, err := decoder.Decode(broken, to); !errors.Is(err, libvpx.ErrBroken) {
			t.Errorf("%q: %v", broken, err)
		}
		if shown, err := decoder.Decode(key, to); err != nil || !shown || got.Rect != sent.Rect {
			t.Errorf("after %q: %v, %v, %v", broken, shown, err, got.Rect)
		}
	}
}
