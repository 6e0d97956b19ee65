package mediatest

import (
	"path/filepath"
	"testing"
)

// Image describes a picture. The zero value is a PNG of 160x90 pixels with 8 bits per channel.
type Image struct {
	// The extension of Name selects the format: .png, .jpg, .webp, .gif, .bmp, .tif, .avif or .heic.
	Name          string
	Width, Height int
	// Source is an FFmpeg source filter, as for Video.
	Source      string
	Filter      string   // an FFmpeg filter, such as "format=rgba,geq=..."
	PixelFormat string   // FFmpeg's name; the default suits the format
	Orientation int      // Exif orientation, 1 to 8; 0 writes none
	Args        []string // more ffmpeg options for the output
}

func (i Image) Make(t testing.TB) string {
	t.Helper()
	if i.Name == "" {
		i.Name = "picture.png"
	}
	if i.Width == 0 {
		i.Width = 160
	}
	if i.Height == 0 {
		i.Height = 90
	}
	if i.Source == "" {
		i.Source = "testsrc2"
	}
	if i.PixelFormat == "" && filepath.Ext(i.Name) == ".png" {
		i.PixelFormat = "rgb24"
	}
	path := filepath.Join(t.TempDir(), i.Name)
	if filepath.Ext(i.Name) == ".heic" {
		drawn := i
		drawn.Name, drawn.Orientation = "picture.png", 0
		EncodeHEIF(t, drawn.Make(t), path)
		if i.Orientation != 0 {
			orient(t, path, i.Orientation)
		}
		return path
	}
	args := []string{"-f", "lavfi", "-i", source(i.Source, i.Width, i.Height, 25), "-frames:v", "1"}
	if filepath.Ext(i.Name) == ".avif" {
		args = append(args, "-c:v", "libaom-av1", "-cpu-used", "8", "-still-picture", "1")
	}
	if i.Filter != "" {
		args = append(args, "-vf", i.Filter)
	}
	if i.PixelFormat != "" {
		args = append(args, "-pix_fmt", i.PixelFormat)
	}
	draw(t, path, append(args, i.Args...))
	if i.Orientation != 0 {
		orient(t, path, i.Orientation)
	}
	return path
}
