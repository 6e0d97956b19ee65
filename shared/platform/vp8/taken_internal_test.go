package vp8

import (
	"encoding/binary"
	"errors"
	"image"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"cutroom/shared/platform/vp8/helper"
)

// takenOver returns a codec whose helper has been compromised. The given function defines the helper's behavior.
func takenOver(t *testing.T, does func(requests io.Reader, answers io.Writer)) *Codec {
	t.Helper()
	memory, shared, err := newShared(helper.SharedSize)
	if err != nil {
		t.Fatal(err)
	}
	memory.Close()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	h := &process{frameTime: time.Second, shared: shared, in: in, out: out, ended: make(chan struct{}),
		cmd: exec.Command("sleep", "600")}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = h.cmd.Wait()
		theirIn.Close()
		theirOut.Close()
		close(h.ended)
	}()
	go does(theirIn, theirOut)
	c := &Codec{library: &Library{}, helper: h, starts: rate.NewLimiter(0, 0)}
	c.last.Store(h)
	t.Cleanup(c.Close)
	return c
}

func answerEach(answer helper.Answer) func(io.Reader, io.Writer) {
	return func(requests io.Reader, answers io.Writer) {
		for request := make([]byte, helper.RequestSize); ; {
			if _, err := io.ReadFull(requests, request); err != nil {
				return
			}
			if binary.Write(answers, binary.LittleEndian, answer) != nil {
				return
			}
		}
	}
}

// keyFrame is a frame of 16x16 pixels.
var keyFrame = []byte{0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0}

// The codec rejects pictures of invalid size.
func TestCompromisedHelperCannotFakePicture(t *testing.T) {
	for _, answer := range []helper.Answer{
		{Width: 16}, {Width: helper.MaxSide + 1, Height: 1}, {Width: helper.MaxSide, Height: helper.MaxSide},
		{Width: 1 << 31, Height: 1 << 31}, {Status: 7}, {Width: 1, Height: 1<<32 - 1},
	} {
		picture := image.YCbCr{}
		shown, err := takenOver(t, answerEach(answer)).Decode(t.Context(), keyFrame, &picture)
		if shown || !errors.Is(err, ErrLost) {
			t.Errorf("%+v: %t, %v; the picture has %v", answer, shown, err, picture.Rect)
		}
	}
}

// The helper responds without reading its requests. It is killed when the pipe fills up.
func TestHelperThatDoesNotReadIsEnded(t *testing.T) {
	c := takenOver(t, func(_ io.Reader, answers io.Writer) {
		for binary.Write(answers, binary.LittleEndian, helper.Answer{Width: 16, Height: 16}) == nil {
		}
	})
	c.helper.frameTime = 300 * time.Millisecond
	var picture image.YCbCr
	for range 100_000 {
		if _, err := c.Decode(t.Context(), keyFrame, &picture); err != nil {
			if !errors.Is(err, ErrLost) {
				t.Error(err)
			}
			return
		}
	}
	t.Error("the helper gets requests forever")
}
