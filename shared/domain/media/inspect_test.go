package media_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
)

func inspect(t *testing.T, path, mime string) media.Info {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := media.Inspect(bytes.NewReader(content), int64(len(content)), mime)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestInspectReadsVideoHeaders(t *testing.T) {
	const unknown = 0
	for _, test := range []struct {
		name          string
		mime          string
		video         mediatest.Video
		width, height int
		seconds       float64
		audio         bool
	}{
		{"MP4", "video/mp4", mediatest.Video{}, 160, 90, 1, true},
		{"MP4 with its header first", "video/mp4", mediatest.Video{FastStart: true}, 160, 90, 1, true},
		{"rotated MP4 of a phone", "video/mp4", mediatest.Video{Rotation: 90}, 90, 160, 1, true},
		{"MP4 upside down", "video/mp4", mediatest.Video{Rotation: 180}, 160, 90, 1, true},
		{"MP4 with wide pixels", "video/mp4", mediatest.Video{Filter: "setsar=2"}, 320, 90, 1, true},
		{"MP4 without sound", "video/mp4", mediatest.Video{Silent: true}, 160, 90, 1, false},
		{
			"MP4 with odd sides", "video/mp4", mediatest.Video{Width: 161, Height: 91, PixelFormat: "yuv444p"}, 161, 91, 1, true,
		},
		{
			"MP4 in fragments", "video/mp4", mediatest.Video{Args: []string{"-movflags", "frag_keyframe+empty_moov"}}, 160, 90,
			unknown, true,
		},
		{"QuickTime", "video/quicktime", mediatest.Video{Name: "a.mov", Seconds: 2}, 160, 90, 2, true},
		{"3GP", "video/3gpp", mediatest.Video{Name: "a.3gp"}, 160, 90, 1, true},
		{"WebM", "video/webm", mediatest.Video{Name: "a.webm"}, 160, 90, 1, true},
		{
			"WebM of a browser's recorder", "video/webm", mediatest.Video{Name: "a.webm", Args: []string{"-live", "1"}}, 160, 90,
			unknown, true,
		},
		{"Matroska", "video/x-matroska", mediatest.Video{Name: "a.mkv", Seconds: 1.5}, 160, 90, 1.5, true},
		{
			"Matroska with wide pixels", "video/x-matroska", mediatest.Video{Name: "a.mkv", Filter: "setsar=2"}, 320, 90, 1,
			true,
		},
		{"AVI", "video/x-msvideo", mediatest.Video{Name: "a.avi", Silent: true}, 160, 90, 1, false},
		{"GIF", "image/gif", mediatest.Video{Name: "a.gif"}, 160, 90, unknown, false},
		{
			"transport stream, which has no header", "video/mp2t", mediatest.Video{Name: "a.ts"}, unknown, unknown, unknown,
			false,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			info := inspect(t, test.video.Make(t), test.mime)
			if info.Width != test.width || info.Height != test.height || info.Audio != test.audio {
				t.Errorf("got %+v", info)
			}
			// Sound ends with a complete packet, so a clip with sound is a little longer.
			if d := info.Duration.Seconds(); (d == 0) != (test.seconds == 0) || math.Abs(d-test.seconds) > 0.05 {
				t.Errorf("Inspect returned a duration of %gs, want %gs", d, test.seconds)
			}
		})
	}
}

func TestInspectReadsImageHeaders(t *testing.T) {
	for _, test := range []struct {
		name          string
		mime          string
		image         mediatest.Image
		width, height int
	}{
		{"PNG", "image/png", mediatest.Image{}, 160, 90},
		{"PNG of 16 bits", "image/png", mediatest.Image{PixelFormat: "rgba64be"}, 160, 90},
		{"JPEG", "image/jpeg", mediatest.Image{Name: "a.jpg"}, 160, 90},
		{"JPEG rotated by Exif", "image/jpeg", mediatest.Image{Name: "a.jpg", Orientation: 6}, 90, 160},
		{"JPEG upside down by Exif", "image/jpeg", mediatest.Image{Name: "a.jpg", Orientation: 3}, 160, 90},
		{"GIF", "image/gif", mediatest.Image{Name: "a.gif"}, 160, 90},
		{"WebP", "image/webp", mediatest.Image{Name: "a.webp"}, 160, 90},
		{"lossless WebP", "image/webp", mediatest.Image{Name: "a.webp", Args: []string{"-lossless", "1"}}, 160, 90},
		{
			"WebP with transparency", "image/webp",
			mediatest.Image{Name: "a.webp", PixelFormat: "yuva420p", Filter: "format=rgba,colorchannelmixer=aa=0.5"}, 160, 90,
		},
		{"BMP", "image/bmp", mediatest.Image{Name: "a.bmp"}, 160, 90},
		{"TIFF", "image/tiff", mediatest.Image{Name: "a.tif"}, 160, 90},
		{"AVIF", "image/avif", mediatest.Image{Name: "a.avif"}, 160, 90},
	} {
		t.Run(test.name, func(t *testing.T) {
			info := inspect(t, test.image.Make(t), test.mime)
			if info.Width != test.width || info.Height != test.height {
				t.Errorf("Inspect returned %dx%d, want %dx%d", info.Width, info.Height, test.width, test.height)
			}
		})
	}
}

func TestInspectReturnsClaimedValues(t *testing.T) {
	if info := inspect(t, mediatest.PNGHeader(t, 60_000, 60_000), "image/png"); info.Width != 60_000 ||
		info.Height != 60_000 {
		t.Errorf("Inspect returned %+v for the header of a large PNG", info)
	}
	hours := mediatest.ClaimDuration(t, mediatest.Video{}.Make(t), 6*3600, false)
	if info := inspect(t, hours, "video/mp4"); info.Duration != 6*time.Hour {
		t.Errorf("Inspect returned %+v for a header that claims six hours", info)
	}
}

func TestInspectIgnoresBrokenHeaders(t *testing.T) {
	clip := mediatest.Video{}.Make(t)
	for _, test := range []struct {
		name, path, mime string
	}{
		{"MP4 without its end, which contains the header", mediatest.Truncated(t, clip, 0.5), "video/mp4"},
		{"text", mediatest.TextFile(t), "video/mp4"},
		{"playlist behind the first box of an MP4", mediatest.DisguisedPlaylist(t, "a.ts"), "video/mp4"},
		{"MP4 as WebM", clip, "video/webm"},
		{"JPEG of two bytes", mediatest.Noise(t, []byte("\xff\xd8"), 2), "image/jpeg"},
		{"unknown type", clip, "text/plain"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if info := inspect(t, test.path, test.mime); info != (media.Info{}) {
				t.Errorf("Inspect returned %+v", info)
			}
		})
	}
}

type counted struct {
	head, tail []byte
	hole       int64
	reads      int
}

func (c *counted) size() int64 { return int64(len(c.head)) + c.hole + int64(len(c.tail)) }

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	c.reads++
	clear(p)
	for i, at := 0, off; i < len(p) && at < c.size(); i, at = i+1, at+1 {
		switch {
		case at < int64(len(c.head)):
			p[i] = c.head[at]
		case at >= int64(len(c.head))+c.hole:
			p[i] = c.tail[at-int64(len(c.head))-c.hole]
		}
	}
	return len(p), nil
}

// The header of an MP4 often follows gigabytes of media data, and each read may be a request to the blob store.
func TestInspectReadsFewBytes(t *testing.T) {
	clip, err := os.ReadFile(mediatest.Video{}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	moov := bytes.LastIndex(clip, []byte("moov")) - 4
	const hole = 3 << 30
	file := &counted{
		head: append(
			[]byte("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42"), 0, 0, 0, 1, 'm', 'd', 'a', 't', 0, 0, 0, 0, 0xc0, 0, 0,
			16,
		),
		hole: hole, tail: clip[moov:],
	}
	info, err := media.Inspect(file, file.size(), "video/mp4")
	if err != nil || info.Width != 160 || info.Duration == 0 {
		t.Errorf("Inspect returned %+v, %v", info, err)
	}
	if file.reads > 3 {
		t.Errorf("Inspect made %d reads", file.reads)
	}
}

func TestInspectLimitsReads(t *testing.T) {
	content := make([]byte, 64<<20)
	for at := 0; at < len(content); at += 128 << 10 {
		copy(content[at:], "\x00\x02\x00\x00free")
	}
	file := &counted{head: content}
	if _, err := media.Inspect(file, file.size(), "video/mp4"); err != nil {
		t.Error(err)
	}
	if file.reads > 64 {
		t.Errorf("Inspect made %d reads", file.reads)
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestInspectReturnsReaderErrors(t *testing.T) {
	broken := errors.New("broken")
	if _, err := media.Inspect(failing{broken}, 1000, "video/mp4"); !errors.Is(err, broken) {
		t.Errorf("Inspect returned %v", err)
	}
	if _, err := media.Inspect(failing{io.EOF}, 1000, "video/mp4"); err != nil {
		t.Errorf("Inspect returned %v for a file that is shorter than its declared size", err)
	}
}

func TestTIFFsThatFFmpegMisrendersAreRejected(t *testing.T) {
	for tag, want := range map[string]string{
		"\x03\x01\x03\x00\x01\x00\x00\x00\x05\x00\x00\x00": "", // LZW
		"\x03\x01\x03\x00\x01\x00\x00\x00\x07\x00\x00\x00": "The TIFF is compressed as JPEG",
		"\x12\xc6\x01\x00\x04\x00\x00\x00\x01\x04\x00\x00": "The file is a raw photo (DNG)",
	} {
		content := "II*\x00\x08\x00\x00\x00\x01\x00" + tag + "\x00\x00\x00\x00"
		err := media.CheckTIFF(strings.NewReader(content), int64(len(content)))
		if want == "" && err != nil || want != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("tag %q: %v, want %q", tag, err, want)
		}
	}
}
