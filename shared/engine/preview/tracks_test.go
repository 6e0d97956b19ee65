package preview_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
)

func TestLooksSurviveSizeChange(t *testing.T) {
	part := func(size string) string {
		return mediatest.Write(t, slices.Concat(mediatest.Drawn(mediatest.Bars, size, "0.2"), mediatest.H264, []string{"a.ts"})...)
	}
	data := input(t, mediatest.Join(t, "a.ts", part("320x180"), part("160x90"), part("90x160")), false)
	for _, prompt := range []string{"vhs", "watercolor", "pencil sketch", "vintage film", "cyberpunk, pixel art"} {
		t.Run(prompt, func(t *testing.T) {
			spec := engine.Spec{
				Kind: catalog.Edit, Prompt: prompt, Seed: 1, Data: data, FPS: 20, Duration: data.Info.Duration, Size: box,
				Reference: input(t, reference, true),
			}
			checkVideo(t, run(t, spec), spec, false)
		})
	}
}

// A clip whose frames are damaged must fail soon, although the look draws a picture for every frame.
func TestClipWithoutFramesFailsSoon(t *testing.T) {
	path := mediatest.Write(t, slices.Concat(mediatest.Drawn(mediatest.Bars, "320x180", "1"), strings.Fields("-pix_fmt yuv420p -c:v libx265 -preset ultrafast a.mp4"))...)
	spec := small(t, "rain")
	spec.Data = input(t, path, false)
	mediatest.Change(t, path, func(movie []byte) bool {
		from, to := strings.Index(string(movie), "mdat")+4, strings.Index(string(movie), "moov")-4
		for i := from; i < to; i++ {
			movie[i] = 0xff
		}
		return from < to
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, _, err := attempt(t, ctx, spec, func(engine.Progress) {}); engine.AsError(err).Code != job.InvalidInput {
		t.Errorf("got %v, want an invalid input", err)
	}
}

func near(a, b []float64, most float64) bool {
	for i := range b {
		if math.Abs(a[i]-b[i]) > most {
			return false
		}
	}
	return len(a) == len(b)
}
