package preview_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/person"
	"cutroom/shared/testkit/pixeltest"
)

var (
	reference  = filepath.Join("..", "..", "..", "testdata", "reference.jpg")
	personClip = filepath.Join("..", "..", "..", "testdata", "person.mp4")
)

func TestEveryKindIsEdited(t *testing.T) {
	for _, c := range []struct {
		kind      catalog.Kind
		prompt    string
		reference string
		size      catalog.Size
		fps       int
	}{
		{catalog.Restyle, "watercolor", "", catalog.Size{Width: 320, Height: 176}, 25},
		{catalog.Restyle, "", reference, catalog.Size{Width: 320, Height: 176}, 25},
		{catalog.Edit, "film noir", "", catalog.Size{Width: 320, Height: 180}, 20},
		{catalog.Edit, "winter", reference, catalog.Size{Width: 272, Height: 156}, 20},
		{catalog.Clip, "anime", "", catalog.Size{Width: 320, Height: 176}, 25},
		{catalog.TextToVideo, "a sailing boat at sunset", "", catalog.Size{Width: 320, Height: 176}, 25},
		{catalog.TextToVideo, "cyberpunk city", "", catalog.Size{Width: 176, Height: 320}, 25},
	} {
		t.Run(string(c.kind)+" "+c.prompt, func(t *testing.T) {
			spec := engine.Spec{
				Kind: c.kind, Prompt: c.prompt, Seed: 3, Size: c.size, FPS: c.fps, Duration: 400 * time.Millisecond,
			}
			if c.kind != catalog.TextToVideo {
				spec.Data = input(t, sample, false)
			}
			if c.reference != "" {
				spec.Reference = input(t, c.reference, true)
			}
			path := run(t, spec)
			checkVideo(t, path, spec, c.kind != catalog.TextToVideo)
			result := frames(t, path, c.size)
			if c.kind == catalog.TextToVideo {
				if m := result[0].Measure(); m.Contrast < 15 || m.Tones < 20 {
					t.Errorf("the picture shows little: %+v", m)
				}
				if d := pixeltest.Difference(result[:1], result[len(result)-1:]); d < 0.5 {
					t.Errorf("the picture moves by %.2f only", d)
				}
				return
			}
			if d := pixeltest.Difference(untouched(t, spec), result); d < 8 {
				t.Errorf("differs from the input by %.1f, want at least 8", d)
			}
		})
	}
}

// checkVideo checks that a browser can play a result immediately. The result must be H.264 High in 8-bit 4:2:0, with
// the index at the front, the exact size, frame rate and length, and audio in sync.
func checkVideo(t *testing.T, path string, spec engine.Spec, sound bool) {
	t.Helper()
	f := mediatest.Inspect(t, path)
	if want := map[bool]int{true: 2, false: 1}[sound]; len(f.Streams) != want {
		t.Fatalf("%d streams, want %d", len(f.Streams), want)
	}
	v, count := f.Streams[0], max(1, int(math.Round(spec.Duration.Seconds()*float64(spec.FPS))))
	if v.CodecName != "h264" || v.Profile != "High" || v.PixFmt != "yuv420p" {
		t.Errorf("the picture is %s %s %s", v.CodecName, v.Profile, v.PixFmt)
	}
	if v.Width != spec.Size.Width || v.Height != spec.Size.Height || v.RFrameRate != itoa(spec.FPS)+"/1" ||
		v.NbFrames != itoa(count) {
		t.Errorf("%dx%d at %s, %s frames; want %s at %d, %d", v.Width, v.Height, v.RFrameRate, v.NbFrames, spec.Size, spec.FPS, count)
	}
	if v.SampleAspectRatio != "1:1" || v.ColorSpace != "bt709" || v.ColorPrimaries != "bt709" ||
		v.ColorTransfer != "bt709" || v.ColorRange != "tv" {
		t.Errorf("aspect %s, colours %s %s %s %s", v.SampleAspectRatio, v.ColorSpace, v.ColorPrimaries, v.ColorTransfer, v.ColorRange)
	}
	if sound {
		a := f.Streams[1]
		length, _ := strconv.ParseFloat(a.Duration, 64)
		if a.CodecName != "aac" || math.Abs(length-float64(count)/float64(spec.FPS)) > 1/float64(spec.FPS) {
			t.Errorf("the sound is %s of %gs, want aac of %gs", a.CodecName, length, float64(count)/float64(spec.FPS))
		}
	}
	content, err := os.ReadFile(path)
	require(t, err)
	if bytes.Index(content, []byte("moov")) > bytes.Index(content, []byte("mdat")) {
		t.Error("the index follows the pictures")
	}
}

func TestReferencesGiveTheirColors(t *testing.T) {
	references := map[string]string{"aurora": reference, "red": mediatest.Image{Source: "color=c=0xcc2010"}.Make(t)}
	for name, holds := range map[string]func(m traits) bool{
		"aurora": func(m traits) bool { return m.Blue > m.Red+50 },
		"red":    func(m traits) bool { return m.Red > m.Green+80 && m.Red > m.Blue+80 },
	} {
		for _, prompt := range []string{"", "oil painting"} {
			spec := small(t, prompt)
			spec.Reference = input(t, references[name], true)
			result := frames(t, run(t, spec), spec.Size)[0]
			if m := result.Measure(); !holds(m) {
				t.Errorf("%s: red %.0f, green %.0f, blue %.0f", name, m.Red, m.Green, m.Blue)
			}
			if l := untouched(t, spec)[0].Likeness(result); l < 0.45 {
				t.Errorf("%s: little is left of the scene: %.2f", name, l)
			}
		}
	}
}

// The clip turns from blue to red. By default, colors are matched to the entire clip.
func TestSelfAnchorUsesFirstFrame(t *testing.T) {
	clip := mediatest.Video{Filter: "hue=h=180:enable='lt(t,0.5)'", Silent: true, Args: []string{"-g", "2"}}.Make(t)
	var specs []engine.Spec
	for _, anchor := range []any{true, false, nil} {
		spec := small(t, "")
		spec.Data, spec.Duration, spec.Reference = input(t, clip, false), time.Second, input(t, reference, true)
		if anchor != nil {
			spec.Options = map[string]any{"self_anchor": anchor}
		}
		specs = append(specs, spec)
	}
	results := edits(t, specs...)
	if d := pixeltest.Difference(results[0], results[2]); d != 0 {
		t.Errorf("without the option the clip differs by %.2f from an anchored one", d)
	}
	if d := pixeltest.Difference(results[0], results[1]); d < 1 {
		t.Errorf("anchoring changes the clip by %.2f only", d)
	}
}

func TestCameraMovesTowardTheFace(t *testing.T) {
	still := filepath.Join(t.TempDir(), "still.jpg")
	mediatest.Run(t, "-i", personClip, "-frames:v", "1", "-q:v", "2", still)
	spec := portrait(t, "she waves")
	spec.Kind, spec.Data, spec.Reference, spec.Duration = catalog.ImageToVideo, input(t, still, true), input(t, reference, true), 2*time.Second
	path, outcome, err := attempt(t, t.Context(), spec, func(engine.Progress) {})
	if err != nil || len(outcome.Understood) != 2 || !strings.Contains(outcome.Notice, "only moves the camera") || !strings.Contains(outcome.Notice, "she waves") {
		t.Fatalf("%+v, %v", outcome, err)
	}
	checkVideo(t, path, spec, false)
	face := func(path, frame string) person.Face {
		square, filters := catalog.Size{Width: 512, Height: 512}, ",scale=512:-1,pad=512:512:-1:-1"
		pixels := decode(t, square, "-i", path, "-vf", "select=eq(n\\,"+frame+")"+filters, "-frames:v", "1")[0].Pixels
		found, err := person.Faces(pixels, square)
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: faces %v, %v", path, found, err)
		}
		return found[0]
	}
	before, after := face(still, "0"), face(path, "14")
	if after.Size < 1.1*before.Size || math.Hypot(after.X-before.X, after.Y-before.Y) > 0.05 {
		t.Errorf("the face moves from %+v to %+v", before, after)
	}
	last := decode(t, spec.Size, "-i", reference, "-vf", "scale=512:288:force_original_aspect_ratio=increase,crop=512:288")
	if d := pixeltest.Difference(last, frames(t, path, spec.Size)[19:]); d > 4 {
		t.Errorf("the last frame differs by %.1f from the last image", d)
	}
}
