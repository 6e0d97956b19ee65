package vp8_test

import (
	"fmt"
	"image"
	"os/exec"
	"testing"

	"cutroom/shared/platform/vp8"
	"cutroom/shared/platform/vp8/vp8test"
)

func open(t testing.TB) *vp8.Codec {
	t.Helper()
	l, err := vp8test.Find()
	if err != nil {
		t.Fatal(err)
	}
	return openOf(t, l)
}

func openOf(t testing.TB, l *vp8.Library) *vp8.Codec {
	t.Helper()
	c, err := l.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func clip(t testing.TB, size image.Point, n int) []*image.YCbCr {
	t.Helper()
	out, err := exec.Command("ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25",
		"-vf", fmt.Sprintf("scale=%d:%d", size.X, size.Y), "-frames:v", fmt.Sprint(n),
		"-pix_fmt", "yuv420p", "-f", "rawvideo", "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	luma, chroma := size.X*size.Y, ((size.X+1)/2)*((size.Y+1)/2)
	var pictures []*image.YCbCr
	for whole := luma + 2*chroma; len(out) >= whole; out = out[whole:] {
		pictures = append(pictures, &image.YCbCr{
			Y: out[:luma], Cb: out[luma:][:chroma], Cr: out[luma+chroma:][:chroma],
			YStride: size.X, CStride: (size.X + 1) / 2,
			SubsampleRatio: image.YCbCrSubsampleRatio420, Rect: image.Rectangle{Max: size},
		})
	}
	if len(pictures) != n {
		t.Fatalf("ffmpeg made %d pictures of %d", len(pictures), n)
	}
	return pictures
}

func difference(a, b *image.YCbCr) float64 {
	sum := 0
	for y := range a.Rect.Dy() {
		for x := range a.Rect.Dx() {
			d := int(a.Y[y*a.YStride+x]) - int(b.Y[y*b.YStride+x])
			sum += max(d, -d)
		}
	}
	return float64(sum) / float64(a.Rect.Dx()*a.Rect.Dy())
}
