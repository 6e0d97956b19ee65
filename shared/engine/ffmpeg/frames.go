package ffmpeg

import (
	"fmt"
	"io"

	"cutroom/shared/domain/catalog"
)

// Frames holds pictures that this program makes, as an input of a command. They are trusted and
// arrive through a pipe.
type Frames struct {
	// Reader yields the pictures one after another: rows from the top, three bytes a pixel (red,
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
