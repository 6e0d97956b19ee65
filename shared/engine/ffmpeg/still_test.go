package ffmpeg_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/media/mediatest"
)

func TestStillDecodesPictures(t *testing.T) {
	tools := find(t)
	for _, test := range []struct {
		name, mime string
		image      mediatest.Image
		want       catalog.Size
	}{
		{"a PNG", "image/png", mediatest.Image{}, catalog.Size{Width: 64, Height: 36}},
		{"a PNG of 16 bits", "image/png", mediatest.Image{PixelFormat: "rgba64be"}, catalog.Size{Width: 64, Height: 36}},
		{"a JPEG", "image/jpeg", mediatest.Image{Name: "a.jpg"}, catalog.Size{Width: 64, Height: 36}},
		{
			"a JPEG that must be rotated", "image/jpeg", mediatest.Image{Name: "a.jpg", Orientation: 6},
			catalog.Size{Width: 36, Height: 64},
		},
		{"a small picture", "image/png", mediatest.Image{Width: 7, Height: 3}, catalog.Size{Width: 7, Height: 3}},
		{"a very wide picture", "image/png", mediatest.Image{Width: 4000, Height: 2}, catalog.Size{Width: 64, Height: 1}},
		{"a very high picture", "image/png", mediatest.Image{Width: 2, Height: 4000}, catalog.Size{Width: 1, Height: 64}},
	} {
		t.Run(test.name, func(t *testing.T) {
			data, err := os.ReadFile(test.image.Make(t))
			if err != nil {
				t.Fatal(err)
			}
			pixels, size, err := tools.Still(t.Context(), data, test.mime, 64)
			if err != nil || size != test.want || len(pixels) != 4*size.Width*size.Height {
				t.Errorf("got %d bytes, %v, %v, want a picture of %v", len(pixels), size, err, test.want)
			}
		})
	}
}

// In a container only the server's own folder is writable. Rotated photos and HEIC files need a temporary file.
func TestStillWritesOnlyToItsFolder(t *testing.T) {
	tools, folder := *find(t), t.TempDir()
	tools.Folder = folder
	pictures := map[string]string{
		"image/jpeg": mediatest.Image{Name: "a.jpg", Orientation: 6}.Make(t), "image/heic": mediatest.Image{Name: "a.heic"}.Make(t),
	}
	t.Setenv("TMPDIR", filepath.Join(folder, "none"))
	for mime, path := range pictures {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := tools.Still(t.Context(), data, mime, 64); err != nil {
			t.Errorf("%s: %v", mime, err)
		}
	}
	if err := tools.CheckHEIC(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v remains, %v", left, err)
	}
}

func TestStillKeepsColors(t *testing.T) {
	picture := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	picture.SetNRGBA(0, 0, color.NRGBA{200, 20, 30, 255})
	picture.SetNRGBA(1, 0, color.NRGBA{10, 200, 30, 128})
	var data bytes.Buffer
	if err := png.Encode(&data, picture); err != nil {
		t.Fatal(err)
	}
	pixels, size, err := find(t).Still(t.Context(), data.Bytes(), "image/png", 384)
	if err != nil || size != (catalog.Size{Width: 2, Height: 1}) || !bytes.Equal(pixels, picture.Pix) {
		t.Errorf("got %v of %v, %v, want %v", pixels, size, err, picture.Pix)
	}
}

// farBack moves a HEIC's header behind 50 boxes, where only heif-convert finds it.
func farBack(heic []byte) []byte {
	at := bytes.Index(heic, []byte("meta"))
	meta := slices.Clone(heic[at-4:][:binary.BigEndian.Uint32(heic[at-4:])])
	copy(heic[at:], "free")
	padding := append([]byte("\x00\x01\x11\x78free"), make([]byte, 70_000)...)
	return slices.Concat(heic, bytes.Repeat(padding, 50), meta)
}

func TestStillRejectsInvalidPictures(t *testing.T) {
	tools := find(t)
	read := func(path string) []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	bomb := read(mediatest.PNGBomb(t, 40_000))
	for name, test := range map[string]struct {
		data []byte
		mime string
	}{
		"nothing":                       {nil, "image/png"},
		"text":                          {[]byte("hello"), "image/jpeg"},
		"a type that is not a picture":  {[]byte("hello"), "video/mp4"},
		"a PNG of 1600 megapixels":      {bomb, "image/png"},
		"a WebP bomb":                   {mediatest.WebPBomb(), "image/webp"},
		"a playlist named GIF":          {[]byte("#EXTM3U\nfile:///etc/passwd\n"), "image/gif"},
		"a WebP larger than its canvas": {mediatest.WebPOverCanvas(t)[:60], "image/webp"},
		"a PNG with 40 MiB of text":     {read(mediatest.PNGTextBomb(t, "zTXt", 2, 20<<20)), "image/png"},
		"a HEIC whose size is far back": {farBack(read(mediatest.Image{Name: "a.heic"}.Make(t))), "image/heic"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := tools.Still(t.Context(), test.data, test.mime, 64); !fault.Is(err, fault.Invalid) {
				t.Errorf("got %v", err)
			}
		})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := tools.Still(ended, bomb, "image/png", 64); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context's end got %v", err)
	}
}
