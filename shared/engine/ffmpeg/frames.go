package ffmpeg

import (
	"fmt"
	"io"

	"cutroom/shared/domain/catalog"
)

// Frames is an input of frames made by this program. They are trusted and arrive in a pipe.
type Frames struct {
	// Reader yields the frames one after another: rows from the top, three bytes per pixel (red,
	// green, blue). It is read to its end, or until the program has ended.
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
