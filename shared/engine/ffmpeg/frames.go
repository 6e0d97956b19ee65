package ffmpeg

import (
	"fmt"
	"io"

	"cutroom/shared/domain/catalog"
)

// Frames is an input of frames made by this program. They are trusted and arrive in a pipe.
type Frames struct {
	// Reader yields the frames by rows from the top, with three bytes per pixel (red, green, blue).
	Reader io.Reader
	Size   catalog.Size
	FPS    int
}

func (f *Frames) args() []string {
	return []string{
		"-protocol_whitelist", "pipe", "-f", "rawvideo", "-pixel_format", "rgb24",
		"-video_size", f.Size.String(), "-framerate", fmt.Sprint(f.FPS), "-i", "pipe:0",
	}
}
