package ffmpeg_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine/ffmpeg"
)

func TestProbeVideoReportsProperties(t *testing.T) {
	tools := find(t)
	for _, test := range []struct {
		name  string
		mime  string
		video mediatest.Video
		want  media.Info
	}{
		{"MP4", "video/mp4", mediatest.Video{}, media.Info{Width: 160, Height: 90, Audio: true}},
		{
			"MP4 in fragments", "video/mp4", mediatest.Video{Args: []string{"-movflags", "frag_keyframe+empty_moov"}},
			media.Info{Width: 160, Height: 90, Audio: true},
		},
		{"portrait", "video/mp4", mediatest.Video{Width: 90, Height: 160}, media.Info{Width: 90, Height: 160, Audio: true}},
		{
			"phone clip, rotated", "video/quicktime", mediatest.Video{Name: "a.mov", Rotation: 90},
			media.Info{Width: 90, Height: 160, Audio: true, Orientation: 6},
		},
		{"upside down", "video/mp4", mediatest.Video{Rotation: 180}, media.Info{Width: 160, Height: 90, Audio: true, Orientation: 3}},
		{"wide pixels", "video/mp4", mediatest.Video{Filter: "setsar=2"}, media.Info{Width: 320, Height: 90, Audio: true, StoredWidth: 160}},
		{
			"wide pixels, rotated", "video/mp4", mediatest.Video{Filter: "setsar=2", Rotation: 270},
			media.Info{Width: 90, Height: 320, Audio: true, StoredWidth: 160, Orientation: 8},
		},
		{
			"odd sides", "video/mp4", mediatest.Video{Width: 161, Height: 91, PixelFormat: "yuv444p"},
			media.Info{Width: 161, Height: 91, Audio: true, PixelFormat: "yuv444p"},
		},
		{"silent", "video/mp4", mediatest.Video{Silent: true}, media.Info{Width: 160, Height: 90}},
		{
			"one frame", "video/mp4", mediatest.Video{Seconds: 0.1, Silent: true},
			media.Info{Width: 160, Height: 90, Duration: 100 * time.Millisecond},
		},
		{
			"one frame of unknown duration", "video/x-matroska",
			mediatest.Video{Name: "a.mkv", Seconds: 0.1, Silent: true, Args: []string{"-live", "1"}},
			media.Info{Width: 160, Height: 90, Duration: 100 * time.Millisecond},
		},
		{"variable rate", "video/mp4", mediatest.Video{Variable: true}, media.Info{Width: 160, Height: 90, Audio: true}},
		{
			"10 bits", "video/mp4", mediatest.Video{PixelFormat: "yuv420p10le"},
			media.Info{Width: 160, Height: 90, Audio: true, PixelFormat: "yuv420p10le"},
		},
		{"HDR", "video/mp4", mediatest.Video{Codec: "libx265", PixelFormat: "yuv420p10le", HDR: true}, media.Info{
			Width: 160, Height: 90, Audio: true, PixelFormat: "yuv420p10le", Primaries: "bt2020", Transfer: "smpte2084",
			Matrix: "bt2020nc"}},
		{"WebM", "video/webm", mediatest.Video{Name: "a.webm"}, media.Info{Width: 160, Height: 90, Audio: true}},
		{
			"WebM from a browser's recorder", "video/webm", mediatest.Video{Name: "a.webm", Args: []string{"-live", "1"}},
			media.Info{Width: 160, Height: 90, Audio: true},
		},
		{"Matroska", "video/x-matroska", mediatest.Video{Name: "a.mkv"}, media.Info{Width: 160, Height: 90, Audio: true}},
		{"AVI", "video/x-msvideo", mediatest.Video{Name: "a.avi"}, media.Info{Width: 160, Height: 90, Audio: true, SoundVaries: true}},
		{
			"transport stream", "video/mp2t", mediatest.Video{Name: "a.ts"},
			media.Info{Width: 160, Height: 90, Audio: true, SoundVaries: true},
		},
		{"Ogg", "video/ogg", mediatest.Video{Name: "a.ogv"}, media.Info{Width: 160, Height: 90, Audio: true, SoundVaries: true}},
		{"Flash", "video/x-flv", mediatest.Video{Name: "a.flv"}, media.Info{Width: 160, Height: 90, Audio: true}},
		{"3GP", "video/3gpp", mediatest.Video{Name: "a.3gp"}, media.Info{Width: 160, Height: 90, Audio: true}},
		{
			"GIF", "image/gif", mediatest.Video{Name: "a.gif"},
			media.Info{Width: 160, Height: 90, PixelFormat: "bgra", Alpha: true},
		},
		{
			"GIF with one frame", "image/gif", mediatest.Video{Name: "a.gif", Seconds: 0.1},
			media.Info{Width: 160, Height: 90, PixelFormat: "bgra", Alpha: true, Duration: 100 * time.Millisecond},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := tools.ProbeVideo(t.Context(), test.video.Make(t), test.mime)
			if err != nil {
				t.Fatal(err)
			}
			if test.want.PixelFormat == "" {
				test.want.PixelFormat = "yuv420p"
			}
			test.want.Interlaced = test.video.Codec == "" && !slices.Contains([]string{".webm", ".ogv", ".gif"}, filepath.Ext(test.video.Name))
			if test.want.Duration == 0 {
				test.want.Duration = time.Second
			}
			// The last frame may be shown slightly longer, and sound is cut at packet boundaries.
			if off := got.Duration - test.want.Duration; off.Abs() > 110*time.Millisecond {
				t.Errorf("duration %v, want %v", got.Duration, test.want.Duration)
			}
			if got.FrameRate < 7 || got.FrameRate > 11 {
				t.Errorf("frame rate %v, want about 10", got.FrameRate)
			}
			if got.HDR() != (test.want.Transfer != "") {
				t.Errorf("HDR is %v", got.HDR())
			}
			test.want.Duration, test.want.FrameRate = got.Duration, got.FrameRate
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestProbeImageReportsProperties(t *testing.T) {
	tools := find(t)
	const transparent = "format=rgba,colorchannelmixer=aa=0.5"
	for _, test := range []struct {
		name          string
		mime          string
		image         mediatest.Image
		width, height int
		format        string
		alpha         bool
	}{
		{"PNG", "image/png", mediatest.Image{}, 160, 90, "rgb24", false},
		{"PNG of 16 bits", "image/png", mediatest.Image{PixelFormat: "rgb48be"}, 160, 90, "rgb48be", false},
		{
			"PNG with transparency", "image/png", mediatest.Image{Filter: transparent, PixelFormat: "rgba"}, 160, 90,
			"rgba", true,
		},
		{"animated PNG", "image/png", mediatest.Image{Args: []string{"-f", "apng"}}, 160, 90, "rgb24", false},
		{"JPEG", "image/jpeg", mediatest.Image{Name: "a.jpg"}, 160, 90, "yuvj444p", false},
		{"JPEG rotated by Exif", "image/jpeg", mediatest.Image{Name: "a.jpg", Orientation: 6}, 90, 160, "yuvj444p", false},
		{"WebP", "image/webp", mediatest.Image{Name: "a.webp", PixelFormat: "yuv420p"}, 160, 90, "yuv420p", false},
		{"GIF", "image/gif", mediatest.Image{Name: "a.gif"}, 160, 90, "bgra", true},
		{"BMP", "image/bmp", mediatest.Image{Name: "a.bmp"}, 160, 90, "bgr24", false},
		{"TIFF", "image/tiff", mediatest.Image{Name: "a.tif", PixelFormat: "rgb24"}, 160, 90, "rgb24", false},
		{"AVIF", "image/avif", mediatest.Image{Name: "a.avif", PixelFormat: "yuv420p"}, 160, 90, "yuv420p", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := tools.ProbeImage(t.Context(), test.image.Make(t), test.mime)
			if err != nil {
				t.Fatal(err)
			}
			if got.Width != test.width || got.Height != test.height || got.PixelFormat != test.format ||
				got.Alpha != test.alpha || got.Duration != 0 || got.Audio {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestProbeEnforcesLimits(t *testing.T) {
	small, err := ffmpeg.Find(
		t.Context(), catalog.Limits{VideoDuration: 2 * time.Second, VideoWidth: 160, VideoHeight: 160, ImagePixels: 160 * 90},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		video mediatest.Video
		mime  string
		want  string
	}{
		{"within", mediatest.Video{Seconds: 1.9}, "video/mp4", ""},
		{"too long", mediatest.Video{Seconds: 3}, "video/mp4", "The video is longer than 2 seconds."},
		{
			"too long, which its header does not show",
			mediatest.Video{Name: "a.webm", Seconds: 3, Args: []string{"-live", "1"}}, "video/webm",
			"The video is longer than 2 seconds.",
		},
		{
			"too long, of a type without a header", mediatest.Video{Name: "a.ts", Seconds: 3}, "video/mp2t",
			"The video is longer than 2 seconds.",
		},
		{"too wide", mediatest.Video{Width: 162}, "video/mp4", "The video is larger than 160x160 pixels."},
		{
			"too wide, of a type without a header", mediatest.Video{Name: "a.ts", Width: 162, Height: 32}, "video/mp2t",
			"The video is larger than 160x160 pixels.",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := small.ProbeVideo(t.Context(), test.video.Make(t), test.mime)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if failure := checkCode(t, err, job.InvalidInput); failure.Message != test.want {
				t.Errorf("got %q, want %q", failure.Message, test.want)
			}
		})
	}
	_, err = small.ProbeImage(t.Context(), mediatest.Image{Width: 161}.Make(t), "image/png")
	if failure := checkCode(t, err, job.InvalidInput); failure.Message != "The image is larger than 0.0144 megapixels." {
		t.Errorf("got %q", failure.Message)
	}
}

func TestProbeRejectsOtherKinds(t *testing.T) {
	tools := find(t)
	_, err := tools.ProbeVideo(t.Context(), mediatest.Image{}.Make(t), "image/png")
	if failure := checkCode(t, err, job.InvalidInput); failure.Message != "The file is not a video." {
		t.Errorf("got %q", failure.Message)
	}
	_, err = tools.ProbeImage(t.Context(), mediatest.Video{}.Make(t), "video/mp4")
	if failure := checkCode(t, err, job.InvalidInput); failure.Message != "The file is not an image." {
		t.Errorf("got %q", failure.Message)
	}
}

func TestProbeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := find(t).ProbeVideo(ctx, mediatest.Video{}.Make(t), "video/mp4"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
