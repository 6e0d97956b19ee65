package ffmpeg_test

import (
	"bytes"
	"context"
	"errors"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
)

// Posters are small JPEGs of the first picture of each file, in the order of the files.
func TestPosters(t *testing.T) {
	tools := find(t)
	noise := "geq=random(1)*255:128+random(2)*127:128+random(3)*127"
	for _, c := range []struct {
		name string
		of   []engine.Input
		want []catalog.Size
	}{
		{
			"of a video and a picture",
			[]engine.Input{
				{Path: mediatest.Video{Width: 640, Height: 360}.Make(t), MIME: "video/mp4"},
				{Path: mediatest.Image{Width: 300, Height: 600}.Make(t), MIME: "image/png"},
			},
			[]catalog.Size{{Width: 320, Height: 180}, {Width: 160, Height: 320}},
		},
		{
			"of a small video that is to be turned",
			[]engine.Input{{Path: mediatest.Video{Width: 64, Height: 36, Rotation: 90}.Make(t), MIME: "video/mp4"}},
			[]catalog.Size{{Width: 36, Height: 64}},
		},
		{
			"of a WebM", []engine.Input{{Path: mediatest.Video{Name: "a.webm"}.Make(t), MIME: "video/webm"}}, nil,
		},
		{
			"of noise", []engine.Input{
				{Path: mediatest.Image{Width: 1280, Height: 1280, Source: "nullsrc", Filter: noise}.Make(t), MIME: "image/png"},
			},
			[]catalog.Size{{Width: 320, Height: 320}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			posters, err := tools.Posters(t.Context(), t.TempDir(), c.of)
			if err != nil || len(posters) != len(c.of) {
				t.Fatalf("%d posters, %v", len(posters), err)
			}
			for i, poster := range posters {
				picture, err := jpeg.DecodeConfig(bytes.NewReader(poster))
				if err != nil || len(poster) > 20_000 || picture.Width > 320 || picture.Height > 320 {
					t.Fatalf("%d: %d bytes of %dx%d, %v", i, len(poster), picture.Width, picture.Height, err)
				}
				if size := (catalog.Size{Width: picture.Width, Height: picture.Height}); c.want != nil && size != c.want[i] {
					t.Errorf("%d: the picture is of %v, want %v", i, size, c.want[i])
				}
			}
		})
	}
}

// What is transparent is white in a poster, which has no transparency.
func TestPosterOfTransparency(t *testing.T) {
	clear := mediatest.Image{Source: "color=c=red", Filter: "format=rgba,geq=r=255:g=0:b=0:a=0", PixelFormat: "rgba"}
	posters, err := find(t).Posters(t.Context(), t.TempDir(), []engine.Input{{Path: clear.Make(t), MIME: "image/png"}})
	if err != nil {
		t.Fatal(err)
	}
	picture, err := jpeg.Decode(bytes.NewReader(posters[0]))
	if err != nil {
		t.Fatal(err)
	}
	if r, g, b, _ := picture.At(10, 10).RGBA(); min(r, g, b) < 0xf000 {
		t.Errorf("the picture is %x %x %x", r, g, b)
	}
}

// A file that cannot be decoded fails, and so does a run whose context ends.
func TestPostersFail(t *testing.T) {
	tools := find(t)
	broken := filepath.Join(t.TempDir(), "broken.mp4")
	if err := os.WriteFile(broken, []byte("this is no video"), 0o600); err != nil {
		t.Fatal(err)
	}
	of := []engine.Input{{Path: broken, MIME: "video/mp4"}}
	_, err := tools.Posters(t.Context(), t.TempDir(), of)
	checkCode(t, err, job.InvalidInput)
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := tools.Posters(ended, t.TempDir(), of); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
