package mediatest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// Image describes a picture. The zero value is a PNG of 160x90 pixels with 8
// bits for each of red, green and blue.
type Image struct {
	// Name of the file. Its extension chooses the format: .png, .jpg, .webp,
	// .gif, .bmp, .tif or .avif. Default "picture.png".
	Name          string
	Width, Height int
	// Source is an FFmpeg source filter that draws the picture, as for Video.
	Source string
	// Filter is applied to the picture, such as "format=rgba,geq=...".
	Filter string
	// PixelFormat is FFmpeg's name, such as "rgb48be" or "rgba"; the default
	// suits the format.
	PixelFormat string
	// Orientation is the value in the Exif data of a JPEG, 1 to 8; 0 writes no Exif data.
	Orientation int
	// Args are more options of ffmpeg for the output.
	Args []string
}

// Make creates the picture and returns its path.
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

// orient puts Exif data with the orientation into a JPEG.
func orient(t testing.TB, path string, orientation int) {
	t.Helper()
	exif := []byte(
		"Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	)
	exif[6+8+2+8] = byte(orientation)
	content := read(t, path)
	oriented := append([]byte{}, content[:2]...)
	oriented = append(oriented, 0xff, 0xe1)
	oriented = binary.BigEndian.AppendUint16(oriented, uint16(len(exif)+2))
	oriented = append(oriented, exif...)
	if err := os.WriteFile(path, append(oriented, content[2:]...), 0o600); err != nil {
		t.Fatal(err)
	}
}
