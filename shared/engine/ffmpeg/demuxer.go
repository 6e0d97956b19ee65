package ffmpeg

import (
	"fmt"
	"strconv"

	"cutroom/shared/engine"
)

// demuxers says which demuxer reads each accepted type. Forcing it keeps
// FFmpeg's own guess, which could be a playlist or a script, out of the game.
var demuxers = map[string]string{
	"video/mp4":        "mov",
	"video/quicktime":  "mov",
	"video/3gpp":       "mov",
	"video/webm":       "matroska",
	"video/x-matroska": "matroska",
	"video/x-msvideo":  "avi",
	"video/mp2t":       "mpegts",
	"video/ogg":        "ogg",
	"video/x-flv":      "flv",
	"image/gif":        "gif",
	"image/png":        "png_pipe",
	"image/jpeg":       "jpeg_pipe",
	"image/webp":       "webp_pipe",
	"image/avif":       "mov",
	"image/bmp":        "bmp_pipe",
	"image/tiff":       "tiff_pipe",
}

// maxStreams bounds the tracks of a file: phones and action cameras write about
// ten.
const maxStreams = 64

// fence returns the options that stand before an input of the type and keep it
// from reaching beyond its file and the limits.
func (t *Tools) fence(mime string) ([]string, error) {
	demuxer, ok := demuxers[mime]
	if !ok {
		return nil, engine.InvalidInput(
			fmt.Errorf("no demuxer for type %q", mime), "The file is neither a video nor an image.",
		)
	}
	options := []string{
		"-protocol_whitelist", "file",
		"-f", demuxer,
		"-max_streams", strconv.Itoa(maxStreams),
		"-max_pixels", strconv.Itoa(t.maxPixels()),
	}
	if demuxer == "mov" {
		// A track must not be read from another file.
		options = append(options, "-enable_drefs", "0", "-use_absolute_path", "0")
	}
	return options, nil
}

// maxPixels is the largest picture that may be decoded. Decoders count sides
// rounded up to blocks, so that some room is needed beyond what an accepted
// input may hold.
func (t *Tools) maxPixels() int {
	pixels := max(t.limits.ImagePixels, t.limits.VideoWidth*t.limits.VideoHeight)
	return pixels + pixels/8 + 1<<20
}

// maxAlloc bounds one allocation, in bytes: a picture of four channels of 16
// bits each (those of 32 bits are kept by channel), and some room.
func (t *Tools) maxAlloc() int { return 8*t.maxPixels() + 64<<20 }
