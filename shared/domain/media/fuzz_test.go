package media_test

import (
	"bytes"
	"os"
	"testing"

	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/domain/media/sniff"
)

// The seeds are the first bytes of real files of every type.
func FuzzInspect(f *testing.F) {
	add := func(path, mime string) {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content, mime)
	}
	small := mediatest.Video{Width: 16, Height: 16, FPS: 2, Source: "color", FastStart: true}
	for name, mime := range map[string]string{
		"a.mp4": "video/mp4", "a.mov": "video/quicktime", "a.webm": "video/webm", "a.mkv": "video/x-matroska",
		"a.avi": "video/x-msvideo", "a.gif": "image/gif",
	} {
		video := small
		video.Name = name
		add(video.Make(f), mime)
	}
	for name, mime := range map[string]string{
		"a.png": "image/png", "a.webp": "image/webp", "a.bmp": "image/bmp", "a.tif": "image/tiff", "a.avif": "image/avif",
	} {
		add(mediatest.Image{Name: name, Width: 16, Height: 16}.Make(f), mime)
	}
	add(mediatest.Image{Name: "a.jpg", Width: 16, Height: 16, Orientation: 6}.Make(f), "image/jpeg")
	f.Add(mediatest.WebPOverCanvas(f), "image/webp")
	f.Add(mediatest.WebPBomb(), "image/webp")
	f.Fuzz(func(t *testing.T, content []byte, mime string) {
		info, err := media.Inspect(bytes.NewReader(content), int64(len(content)), mime)
		if err != nil {
			t.Errorf("Inspect returned the error %v for bytes in memory", err)
		}
		if info.Width < 0 || info.Height < 0 || info.Duration < 0 || (info.Width == 0) != (info.Height == 0) {
			t.Errorf("Inspect returned %+v", info)
		}
		if kind, ok := sniff.Media(content); ok && kind.MIME == "" {
			t.Error("Sniff returned a type without a name")
		}
		if name, known := sniff.Any(content); known && name == "" {
			t.Error("Detect returned a type without a name")
		}
	})
}
