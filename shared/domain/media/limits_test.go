package media_test

import (
	"bytes"
	"math"
	"os"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
)

var limits = catalog.Limits{
	VideoDuration: 5 * time.Minute, VideoWidth: 4096, VideoHeight: 4096, ImagePixels: 50_000_000,
}

func TestCheckVideoAppliesLimits(t *testing.T) {
	for _, test := range []struct {
		name string
		info media.Info
		want string
	}{
		{"unknown", media.Info{}, ""},
		{"the largest and longest", media.Info{Width: 4096, Height: 4096, Duration: 5 * time.Minute}, ""},
		{"cut at the limit, with the last packet of sound", media.Info{Duration: 5*time.Minute + 50*time.Millisecond}, ""},
		{"too long", media.Info{Duration: 5*time.Minute + time.Second}, "The video is longer than 5 minutes."},
		{"too wide", media.Info{Width: 4097, Height: 2}, "The video is larger than 4096x4096 pixels."},
		{"too high", media.Info{Width: 2, Height: 4097}, "The video is larger than 4096x4096 pixels."},
	} {
		t.Run(test.name, func(t *testing.T) { checkFault(t, media.CheckVideo(test.info, limits), test.want) })
	}
}

func TestCheckImageAppliesLimits(t *testing.T) {
	for _, test := range []struct {
		name string
		info media.Info
		want string
	}{
		{"unknown", media.Info{}, ""},
		{"the largest", media.Info{Width: 10_000, Height: 5_000}, ""},
		{"too large", media.Info{Width: 10_000, Height: 5_001}, "The image is larger than 50 megapixels."},
		{
			"larger than an integer", media.Info{Width: math.MaxUint32, Height: math.MaxUint32},
			"The image is larger than 50 megapixels.",
		},
	} {
		t.Run(test.name, func(t *testing.T) { checkFault(t, media.CheckImage(test.info, limits), test.want) })
	}
}

func TestErrorsFormatDurationsForPeople(t *testing.T) {
	for limit, want := range map[time.Duration]string{
		time.Minute:             "The video is longer than 1 minute.",
		90 * time.Second:        "The video is longer than 90 seconds.",
		1500 * time.Millisecond: "The video is longer than 1.5s.",
	} {
		err := media.CheckVideo(media.Info{Duration: time.Hour}, catalog.Limits{VideoDuration: limit})
		checkFault(t, err, want)
	}
}

func checkFault(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case want != "" && (!fault.Is(err, fault.Invalid) || err.Error() != want):
		t.Errorf("got %v, want %q", err, want)
	}
}

// Frame rates of cameras are accepted. No machine could decode the rejected videos in time.
func TestPhoneVideosAreAccepted(t *testing.T) {
	for _, c := range []struct {
		width, height int
		rate          float64
		length        time.Duration
		accepted      bool
	}{
		{3840, 2160, 60, 5 * time.Minute, true},
		{1920, 1080, 240.5, 5 * time.Minute, true},
		{4096, 2160, 120, 2 * time.Minute, true},
		{4096, 4096, 60, 2 * time.Minute, true},
		{4096, 2160, 120, 5 * time.Minute, false},
		{1280, 720, 480, 5 * time.Minute, true},
		{320, 240, 1000, 40 * time.Millisecond, true}, // only 40 frames
		{4096, 4096, 1000, 5 * time.Minute, false},
		{4096, 4096, 1000, 100 * time.Millisecond, false},
		{320, 240, 1000, time.Minute, false},
	} {
		err := media.CheckVideo(media.Info{Width: c.width, Height: c.height, FrameRate: c.rate, Duration: c.length}, limits)
		if (err == nil) != c.accepted {
			t.Errorf("%dx%d at %g frames per second for %v: %v", c.width, c.height, c.rate, c.length, err)
		}
	}
	err := media.CheckVideo(media.Info{Width: 4096, Height: 4096, FrameRate: 60, Duration: 5 * time.Minute}, limits)
	checkFault(t, err, "The video's frames total 302 gigapixels; the limit is 150. "+
		"Send a shorter or smaller video, or one with fewer frames.")
	err = media.CheckVideo(media.Info{Width: 4096, Height: 4096, FrameRate: 1000, Duration: time.Second}, limits)
	checkFault(t, err, "The video has 1000 frames of 4096x4096 pixels per second, which is 16778 megapixels per second. "+
		"The limits are 480 frames and 1100 megapixels per second.")
}

// Package job rejects videos by the frame rate in the header.
func TestHeaderContainsFrameRate(t *testing.T) {
	content, err := os.ReadFile(mediatest.Video{Width: 64, Height: 64, FPS: 900, Seconds: 2}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	info, err := media.Inspect(bytes.NewReader(content), int64(len(content)), "video/mp4")
	if err != nil || math.Abs(info.FrameRate-900) > 1 {
		t.Fatalf("%g frames per second, %v", info.FrameRate, err)
	}
	if media.CheckVideo(info, limits) == nil {
		t.Error("900 frames per second were accepted")
	}
}

// Large amounts of compressed text are rejected before FFmpeg decodes them.
func TestPNGsWithMuchTextAreRejected(t *testing.T) {
	for path, accepted := range map[string]bool{
		mediatest.PNGTextBomb(t, "zTXt", 4, 4<<20):   true,
		mediatest.PNGTextBomb(t, "iTXt", 4, 4<<20):   true,
		mediatest.PNGTextBomb(t, "zTXt", 40, 50<<20): false,
		mediatest.PNGTextBomb(t, "iTXt", 40, 50<<20): false,
		mediatest.PNGTextBomb(t, "zTXt", 1001, 1):    false,
		mediatest.PNGProfileBomb(t, 100<<20):         false,
		mediatest.PNGBomb(t, 7071):                   true,
	} {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		stat, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if err := media.CheckPNG(file, stat.Size()); (err == nil) != accepted || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s of %d bytes: %v", path, stat.Size(), err)
		}
	}
}
