package ffmpeg

import (
	"fmt"
	"strconv"

	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
)

// demuxers maps each accepted type to its demuxer. FFmpeg must not guess, because it might pick a
// playlist or script demuxer.
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

// maxStreams limits the tracks in a file. Phones and action cameras write about ten.
const maxStreams = 64

// sandbox returns the options that restrict an input to a single file, its type and the limits.
func (t *Tools) sandbox(mime string, pixels int) ([]string, error) {
	demuxer, ok := demuxers[mime]
	if !ok {
		return nil, engine.InvalidInput(fmt.Errorf("no demuxer for type %q", mime),
			"The file is neither a video nor an image.")
	}
	options := []string{
		"-protocol_whitelist", "file",
		"-f", demuxer,
		"-max_streams", strconv.Itoa(maxStreams),
		"-max_pixels", strconv.Itoa(pixels),
	}
	if demuxer == "mov" {
		// A track must not reference another file.
		options = append(options, "-enable_drefs", "0", "-use_absolute_path", "0")
	}
	return options, nil
}

func (t *Tools) maxPixels() int {
	return roughly(max(t.limits.ImagePixels, t.limits.VideoWidth*t.limits.VideoHeight))
}

// maxPixelsOf returns the pixel limit for pictures in a file of the type. Headers may understate the size.
func (t *Tools) maxPixelsOf(mime string) int {
	if kind, _ := media.Find(mime); kind.Video && !kind.Image {
		return roughly(t.limits.VideoWidth * t.limits.VideoHeight)
	}
	return t.maxPixels()
}

// roughly adds a margin, because decoders round dimensions up to whole blocks.
func roughly(pixels int) int { return pixels + pixels/8 + 1<<20 }

// maxAlloc limits one allocation, in bytes. It allows a picture with four 16-bit channels and a
// margin. Pictures with 32-bit channels are allocated per channel.
func (t *Tools) maxAlloc() int { return 8*t.maxPixels() + 64<<20 }
