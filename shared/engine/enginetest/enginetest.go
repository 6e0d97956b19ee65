// Package enginetest holds conformance tests for every [engine.Engine] and [engine.LiveEngine].
package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/testkit/conformance"
)

type Harness struct {
	Engine engine.Engine
	// Models maps each kind to a model. It is nil if the engine's edits depend only on the kind.
	Models map[catalog.Kind]string
	// Video and Image are the result sizes, in landscape. They are small, because the tests do not
	// judge image quality.
	Video, Image catalog.Size
	FPS          int
	Previews     bool
	// Inexact is true if clips with the same seed are similar but not identical, because the encoder varies.
	Inexact bool
}

func Run(t *testing.T, h Harness) {
	tools, err := ffmpeg.Find(t.Context(), catalog.Limits{
		VideoDuration: time.Minute, VideoWidth: 4096, VideoHeight: 4096, ImagePixels: 50_000_000,
	})
	conformance.OK(t, err)
	clips := map[string]media.Info{}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.run(&suite{T: t, Harness: h, tools: tools, clips: clips})
		})
	}
}

type suite struct {
	*testing.T
	Harness
	tools *ffmpeg.Tools
	clips map[string]media.Info
}

// The clip is one second long unless the test sets a length.
func (s *suite) spec(kind catalog.Kind, clip mediatest.Video) engine.Spec {
	s.Helper()
	spec := engine.Spec{
		Job: "job_test", Model: s.Models[kind], Kind: kind, Prompt: "a quiet winter evening", Seed: 7,
		Options: map[string]any{"resolution": "720p"}, Size: s.Video, FPS: s.FPS, Duration: time.Second,
	}
	switch kind {
	case catalog.TextToVideo:
	case catalog.Image, catalog.ImageToVideo:
		spec.Data = s.image(mediatest.Image{Name: "data.png", Width: 160, Height: 90})
		if kind == catalog.Image {
			spec.Size, spec.FPS, spec.Duration = s.Image, 0, 0
		}
	default:
		path, described := clip.Make(s), fmt.Sprintf("%+v", clip)
		info, ok := s.clips[described]
		if !ok {
			var err error
			info, err = s.tools.ProbeVideo(s.Context(), path, "video/mp4")
			conformance.OK(s, err)
			s.clips[described] = info
		}
		spec.Data = &engine.Input{Path: path, MIME: "video/mp4", Info: info}
		spec.Size = s.Video.Fit(catalog.Size{Width: info.Width, Height: info.Height})
		spec.Duration = info.Duration
	}
	return spec
}

func (s *suite) image(image mediatest.Image) *engine.Input {
	s.Helper()
	path := image.Make(s)
	mime := map[string]string{".png": "image/png", ".jpg": "image/jpeg"}[filepath.Ext(path)]
	info, err := s.tools.ProbeImage(s.Context(), path, mime)
	conformance.OK(s, err)
	return &engine.Input{Path: path, MIME: mime, Info: info}
}

func (s *suite) run(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) (output string, err error) {
	s.Helper()
	spec.Folder = s.TempDir()
	spec.Output = filepath.Join(spec.Folder, "output.mp4")
	if spec.Kind == catalog.Image {
		spec.Output = filepath.Join(spec.Folder, "output.png")
	}
	report, err := s.Engine.Run(ctx, spec, progress)
	if err == nil && report.Engine == "" {
		s.Error("the engine reports no name")
	}
	return spec.Output, err
}

func (s *suite) edited(spec engine.Spec) media.Info {
	s.Helper()
	path, err := s.run(s.Context(), spec, func(engine.Progress) {})
	conformance.OK(s, err)
	probe, mime := s.tools.ProbeVideo, "video/mp4"
	if spec.Kind == catalog.Image {
		probe, mime = s.tools.ProbeImage, "image/png"
	}
	info, err := probe(s.Context(), path, mime)
	conformance.OK(s, err)
	if info.Width != spec.Size.Width || info.Height != spec.Size.Height {
		s.Errorf("the result is %dx%d, want %s", info.Width, info.Height, spec.Size)
	}
	if spec.Kind == catalog.Image {
		return info
	}
	frame := 1 / float64(spec.FPS)
	frames := max(1, math.Round(spec.Duration.Seconds()*float64(spec.FPS)))
	if math.Abs(info.FrameRate-float64(spec.FPS)) > 0.01 || math.Abs(info.Duration.Seconds()-frames*frame) > frame {
		s.Errorf("the result has %g frames a second in %s, want %d in %gs", info.FrameRate, info.Duration, spec.FPS,
			frames*frame)
	}
	if want := spec.Data != nil && spec.Data.Info.Audio; info.Audio != want {
		s.Errorf("the result has sound: %t, want %t", info.Audio, want)
	}
	return info
}

// maxApart is the largest mean luma difference between two clips that are considered similar. Two encodings of one
// noisy clip differ by 2 to 5; clips with different seeds differ by 20 or more.
const maxApart = 10

// same compares two results. For an inexact engine, similar results suffice. The result how describes the comparison.
func (s *suite) same(spec engine.Spec, one, other string) (same bool, how string) {
	s.Helper()
	a, err := os.ReadFile(one)
	conformance.OK(s, err)
	b, err := os.ReadFile(other)
	conformance.OK(s, err)
	if bytes.Equal(a, b) {
		return true, "identical bytes"
	}
	if spec.Kind == catalog.Image || !s.Inexact {
		return false, fmt.Sprintf("different bytes, %d and %d", len(a), len(b))
	}
	a, b = s.luma(one), s.luma(other)
	if len(a) != len(b) || len(a) == 0 {
		return false, fmt.Sprintf("%d and %d pixels", len(a), len(b))
	}
	sum := 0
	for i := range a {
		sum += max(int(a[i])-int(b[i]), int(b[i])-int(a[i]))
	}
	apart := float64(sum) / float64(len(a))
	return apart <= maxApart, fmt.Sprintf("pixels differ by %.1f on average", apart)
}

func (s *suite) luma(path string) []byte {
	s.Helper()
	var pixels bytes.Buffer
	conformance.OK(s, s.tools.Run(s.Context(), ffmpeg.Command{
		Folder: s.TempDir(), Inputs: []ffmpeg.Source{{Path: path, MIME: "video/mp4"}}, Stdout: &pixels,
		Args: []string{"-map", "0:V:0", "-an", "-f", "rawvideo", "-pix_fmt", "gray", "pipe:1"},
	}))
	return pixels.Bytes()
}

type test struct {
	name string
	run  func(s *suite)
}

var tests = []test{
	{"edits a clip with its length and sound, in the requested size and rate", func(s *suite) {
		for _, kind := range []catalog.Kind{catalog.Restyle, catalog.Edit, catalog.TryOn, catalog.Clip} {
			spec := s.spec(kind, mediatest.Video{})
			if kind == catalog.TryOn {
				spec.Prompt = "a red plaid shirt"
			}
			s.edited(spec)
		}
	}},
	{"edits a clip with a reference image", func(s *suite) {
		for _, kind := range []catalog.Kind{catalog.Edit, catalog.TryOn} {
			spec := s.spec(kind, mediatest.Video{Seconds: 0.5})
			spec.Prompt, spec.Reference = "", s.image(mediatest.Image{Name: "reference.jpg", Width: 90, Height: 120})
			s.edited(spec)
		}
	}},
	{"edits a clip without sound", func(s *suite) { s.edited(s.spec(catalog.Edit, mediatest.Video{Silent: true})) }},
	{"edits a rotated clip", func(s *suite) {
		if info := s.edited(s.spec(catalog.Edit, mediatest.Video{Rotation: 90})); info.Width > info.Height {
			s.Errorf("the result is %dx%d", info.Width, info.Height)
		}
	}},
	{"edits a clip of one frame", func(s *suite) {
		s.edited(s.spec(catalog.Edit, mediatest.Video{Seconds: 0.1, Silent: true}))
	}},
	{
		"edits a clip with a variable frame rate",
		func(s *suite) { s.edited(s.spec(catalog.Edit, mediatest.Video{Variable: true})) },
	},
	{"makes a video from text", func(s *suite) {
		landscape := s.spec(catalog.TextToVideo, mediatest.Video{})
		portrait := landscape
		portrait.Size, portrait.Duration = landscape.Size.Portrait(), time.Second/2
		s.edited(landscape)
		s.edited(portrait)
	}},
	{"makes a video from one or two images, if it declares this", func(s *suite) {
		if engine.CapabilitiesOf(s.Engine).ImageToVideo {
			spec := s.spec(catalog.ImageToVideo, mediatest.Video{})
			s.edited(spec)
			spec.Prompt, spec.Reference = "", s.image(mediatest.Image{Name: "last.jpg", Width: 90, Height: 120})
			s.edited(spec)
		}
	}},
	{"edits an image", func(s *suite) { s.edited(s.spec(catalog.Image, mediatest.Video{})) }},
	{"edits an image with a reference image", func(s *suite) {
		spec := s.spec(catalog.Image, mediatest.Video{})
		spec.Reference = s.image(mediatest.Image{Name: "reference.jpg", Width: 90, Height: 120})
		s.edited(spec)
	}},
	{"repeats a result for the same seed", func(s *suite) {
		result := func(spec engine.Spec) string {
			path, err := s.run(s.Context(), spec, func(engine.Progress) {})
			conformance.OK(s, err)
			return path
		}
		for _, kind := range []catalog.Kind{catalog.Edit, catalog.TextToVideo, catalog.Image} {
			spec := s.spec(kind, mediatest.Video{Seconds: 0.3, Silent: true})
			spec.Duration = min(spec.Duration, 300*time.Millisecond)
			first := result(spec)
			if same, how := s.same(spec, first, result(spec)); !same {
				s.Errorf("%s: the same seed produced another result: %s", kind, how)
			}
			spec.Seed++
			if same, how := s.same(spec, first, result(spec)); same {
				s.Errorf("%s: another seed produced the same result: %s", kind, how)
			}
		}
	}},
	{"reports rising progress from 0 to 1 with a stage", func(s *suite) {
		var mu sync.Mutex
		last, calls := 0.0, 0
		_, err := s.run(s.Context(), s.spec(catalog.Edit, mediatest.Video{}), func(p engine.Progress) {
			if !mu.TryLock() {
				s.Error("the callback is called from two goroutines concurrently")
				return
			}
			defer mu.Unlock()
			calls++
			if p.Fraction < last || p.Fraction > 1 || p.Stage == "" {
				s.Errorf("%+v after %g", p, last)
			}
			last = p.Fraction
		})
		conformance.OK(s, err)
		if calls < 2 || last < 0.5 {
			s.Errorf("%d calls, the last at %g", calls, last)
		}
	}},
	{"sends previews as small JPEGs if they are requested", func(s *suite) {
		spec := s.spec(catalog.Edit, mediatest.Video{Seconds: 3})
		var results [2]string
		for i, wanted := range []bool{false, true} {
			if wanted {
				spec.PreviewEvery = time.Nanosecond
			}
			previews := 0
			path, err := s.run(s.Context(), spec, func(p engine.Progress) {
				if p.Preview == nil {
					return
				}
				previews++
				if err := engine.CheckPreview(p.Preview); err != nil {
					s.Error(err)
				}
			})
			conformance.OK(s, err)
			if !wanted && previews > 0 || wanted && s.Previews && previews == 0 {
				s.Errorf("previews requested: %t, and the engine sent %d", wanted, previews)
			}
			results[i] = path
		}
		if same, how := s.same(spec, results[0], results[1]); !same {
			s.Errorf("with previews the result differs: %s", how)
		}
	}},
	{"runs several edits concurrently", func(s *suite) {
		var all sync.WaitGroup
		for range 3 {
			spec := s.spec(catalog.Edit, mediatest.Video{Seconds: 0.3})
			spec.Folder = s.TempDir()
			spec.Output = filepath.Join(spec.Folder, "output.mp4")
			all.Go(func() {
				if _, err := s.Engine.Run(s.Context(), spec, func(engine.Progress) {}); err != nil {
					s.Error(err)
				}
			})
		}
		all.Wait()
	}},
	{"rejects an input without pictures, without a retry", func(s *suite) {
		blank := filepath.Join(s.TempDir(), "blank.mp4") // it has a valid header and sound
		mediatest.Run(s, "-i", mediatest.Video{}.Make(s), "-c", "copy", "-bsf:v", "filter_units=remove_types=5", blank)
		noise := mediatest.Noise(s, []byte("\x00\x00\x00\x18ftypisom"), 20_000)
		for i, path := range []string{blank, noise, noise} {
			kind := []catalog.Kind{catalog.Edit, catalog.Edit, catalog.Image}[i]
			spec := s.spec(kind, mediatest.Video{})
			spec.Data.Path, spec.Prompt = path, "a watercolor painting"
			_, err := s.run(s.Context(), spec, func(engine.Progress) {})
			var failure *engine.Error
			if !errors.As(err, &failure) || failure.Code != job.InvalidInput || failure.Retryable || failure.Message == "" {
				s.Errorf("%s: error %v", kind, err)
			}
			if failure != nil && strings.Contains(failure.Message, spec.Data.Path) {
				s.Errorf("%s: the message %q contains a path", kind, failure.Message)
			}
		}
	}},
	{"does nothing after the context has ended", func(s *suite) {
		spec := s.spec(catalog.Edit, mediatest.Video{})
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		if _, err := s.run(ctx, spec, func(engine.Progress) {}); !errors.Is(err, context.Canceled) {
			s.Errorf("error %v, want the context's", err)
		}
	}},
	{"stops with the context and edits again afterwards", func(s *suite) {
		for _, kind := range []catalog.Kind{catalog.Edit, catalog.TextToVideo} {
			spec := s.spec(kind, mediatest.Video{Seconds: 3})
			ctx, cancel := context.WithCancel(s.Context())
			defer cancel()
			if _, err := s.run(ctx, spec, func(engine.Progress) { cancel() }); !errors.Is(err, context.Canceled) {
				s.Errorf("%s: error %v, want the context's", kind, err)
			}
		}
		s.edited(s.spec(catalog.Edit, mediatest.Video{Seconds: 0.5}))
	}},
}
