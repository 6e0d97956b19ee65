package ffmpeg

import (
	"fmt"
	"io"

	"cutroom/shared/domain/catalog"
)

// Frames is an input of raw frames that this program generates. They are trusted and arrive through a pipe.
type Frames struct {
	// Reader yields the frames row by row from the top, with three bytes per pixel (red, green, blue).
	Reader io.Reader
	Size   catalog.Size
	FPS    int
	// Planar means that a frame is luma and half-size chroma (yuv420p) instead of red, green and blue.
	Planar bool
}

func (f *Frames) args() []string {
	format := "rgb24"
	if f.Planar {
		format = "yuv420p"
	}
	return []string{
		"-protocol_whitelist", "pipe", "-f", "rawvideo", "-pixel_format", format,
		"-video_size", f.Size.String(), "-framerate", fmt.Sprint(f.FPS), "-i", "pipe:0",
	}
}
