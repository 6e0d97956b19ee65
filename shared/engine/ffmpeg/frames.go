package ffmpeg

import (
	"fmt"
	"io"

	"cutroom/shared/domain/catalog"
)

// Frames are pictures that this program makes, as an input of a command. They
// are trusted, and come through a pipe rather than from a file.
type Frames struct {
	// Reader yields the pictures one after the other: rows from the top, three
	// bytes a pixel (red, green, blue). It is read until its end, or until the
	// program has ended.
	Reader io.Reader
	Size   catalog.Size
	// FPS is the number of pictures in a second.
	FPS int
}

// args are the options of the input.
func (f *Frames) args() []string {
	return []string{
		"-protocol_whitelist", "pipe", "-f", "rawvideo", "-pixel_format", "rgb24",
		"-video_size", f.Size.String(), "-framerate", fmt.Sprint(f.FPS), "-i", "pipe:0",
	}
}
