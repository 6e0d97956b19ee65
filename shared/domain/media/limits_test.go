package media_test

import (
	"math"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/media"
)

var limits = catalog.Limits{
	VideoDuration: 5 * time.Minute, VideoWidth: 4096, VideoHeight: 4096, ImagePixels: 50_000_000,
}

func TestCheckVideo(t *testing.T) {
	for _, test := range []struct {
		name string
		info media.Info
		want string
	}{
		{"unknown", media.Info{}, ""},
		{"the largest and longest", media.Info{Width: 4096, Height: 4096, Duration: 5 * time.Minute}, ""},
		{"cut at the limit, with its last packet of sound", media.Info{Duration: 5*time.Minute + 50*time.Millisecond}, ""},
		{"too long", media.Info{Duration: 5*time.Minute + time.Second}, "The video is longer than 5 minutes."},
		{"too wide", media.Info{Width: 4097, Height: 2}, "The video is larger than 4096x4096 pixels."},
		{"too high", media.Info{Width: 2, Height: 4097}, "The video is larger than 4096x4096 pixels."},
	} {
		t.Run(test.name, func(t *testing.T) { checkFault(t, media.CheckVideo(test.info, limits), test.want) })
	}
}

func TestCheckImage(t *testing.T) {
	for _, test := range []struct {
		name string
		info media.Info
		want string
	}{
		{"unknown", media.Info{}, ""},
		{"the largest", media.Info{Width: 10_000, Height: 5_000}, ""},
		{"too large", media.Info{Width: 10_000, Height: 5_001}, "The image is larger than 50 megapixels."},
		{
			"larger than numbers go", media.Info{Width: math.MaxUint32, Height: math.MaxUint32},
			"The image is larger than 50 megapixels.",
		},
	} {
		t.Run(test.name, func(t *testing.T) { checkFault(t, media.CheckImage(test.info, limits), test.want) })
	}
}

func TestLimitsInWords(t *testing.T) {
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
		t.Errorf("refused: %v", err)
	case want != "" && (!fault.Is(err, fault.Invalid) || err.Error() != want):
		t.Errorf("got %v, want %q", err, want)
	}
}
