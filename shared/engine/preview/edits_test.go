package preview_test

import (
	"image"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/testkit/pixeltest"
)

// frameAt maps a position in the result to the input position that is shown there.
type frameAt func(x, y float64) (fromX, fromY float64)

// Edits work whatever other edits do to the length, in clips with few frames, and if the sound is longer.
func TestClipsWithFewFramesAreEdited(t *testing.T) {
	const moving = "-f lavfi -i testsrc2=s=320x180:r=5 -pix_fmt yuv420p -frames:v "
	one := mediatest.Write(t, strings.Fields(moving+"1 one.mp4")...)
	two := mediatest.Write(t, strings.Fields(moving+"2 two.mp4")...)
	sparse := mediatest.Write(t, strings.Fields("-f lavfi -i testsrc=s=320x180:r=1:d=3 -f lavfi -i sine=d=6 -pix_fmt yuv420p sparse.mp4")...)
	for prompt, path := range map[string]string{
		"boomerang and crop to square": sample, "crop to square and freeze the last frame for 1 second": sample,
		"crop to square": one, "fit into a square with blurred bars": one, "square crop, slow motion": one,
		"square crop, slow motion 4x": two, "trim from 1.3 to 1.4 seconds, square": sparse, "last 0.01 seconds, square": sparse,
	} {
		spec := small(t, prompt)
		spec.Data = input(t, path, false)
		spec.Duration = spec.Data.Info.Duration
		if _, outcome, err := attempt(t, t.Context(), spec); err != nil || outcome.Size.Width != outcome.Size.Height {
			t.Errorf("%s: %+v, %v", prompt, outcome, err)
		}
	}
}

// Each geometric edit moves the pixels as its prompt says.
func TestGeometryIsEdited(t *testing.T) {
	spec := small(t, "")
	spec.Duration = 100 * time.Millisecond
	before := frames(t, run(t, spec), spec.Size)[0]
	for _, c := range []struct {
		prompt        string
		width, height int
		from          frameAt // positions are fractions of the sides
	}{
		{"rotate 90 degrees", 180, 320, func(x, y float64) (float64, float64) { return y, 1 - x }},
		{"rotate left", 180, 320, func(x, y float64) (float64, float64) { return 1 - y, x }},
		{"mirror it", 320, 180, func(x, y float64) (float64, float64) { return 1 - x, y }},
		{"flip vertically", 320, 180, func(x, y float64) (float64, float64) { return x, 1 - y }},
		{"square, but don't crop anything off", 180, 180, func(x, y float64) (float64, float64) { return x, 0.5 + (y-0.5)*320/180 }},
		{"resize it to 240 pixels wide", 240, 136, func(x, y float64) (float64, float64) { return x, y }},
		{"make it 9:16", 180, 320, func(x, y float64) (float64, float64) { return 0.5 + (x-0.5)*(180.0*9/16)/320, y }},
		{"2倍放大", 320, 180, func(x, y float64) (float64, float64) { return 0.5 + (x-0.5)/2, 0.5 + (y-0.5)/2 }},
		{"zoom in 2x on the top left", 320, 180, func(x, y float64) (float64, float64) { return x / 2, y / 2 }},
		{"upscale it and rotate 180 degrees", 640, 360, func(x, y float64) (float64, float64) { return 1 - x, 1 - y }},
	} {
		t.Run(c.prompt, func(t *testing.T) {
			spec.Prompt = c.prompt
			path, outcome, err := attempt(t, t.Context(), spec)
			want := catalog.Size{Width: c.width, Height: c.height}
			if err != nil || outcome.Size != want || outcome.Notice != "" {
				t.Fatalf("%+v, %v, want %s", outcome, err, want)
			}
			after := frames(t, path, want)[0]
			sum, count := 0.0, 0
			for y := 4; y < c.height-4; y += 3 {
				for x := 4; x < c.width-4; x += 3 {
					fx, fy := c.from((float64(x)+0.5)/float64(c.width), (float64(y)+0.5)/float64(c.height))
					want := 0.0 // bars are black
					if fy > 0 && fy < 1 {
						want = before.Luma(int(fx*320), int(fy*180))
					}
					sum += math.Abs(after.Luma(x, y) - want)
					count++
				}
			}
			if mean := sum / float64(count); mean > 7 {
				t.Errorf("the pixels differ from the expected ones by %.1f", mean)
			}
		})
	}
}

// Each time edit shows the input's moments at the right times, and has the right length.
func TestTimeEditsShowTheRightFrames(t *testing.T) {
	spec := small(t, "")
	spec.Duration = 2 * time.Second
	before := frames(t, run(t, spec), spec.Size)
	for _, c := range []struct {
		prompt string
		length float64
		from   func(second float64) float64
	}{
		{"últimos 0.5 segundos", 0.5, func(s float64) float64 { return 1.5 + s }},
		{"remove the first 1.2 seconds", 0.8, func(s float64) float64 { return 1.2 + s }},
		{"trim from 0.5 to 1.5 seconds", 1, func(s float64) float64 { return 0.5 + s }},
		{"remove the last second", 1, func(s float64) float64 { return s }},
		{"cut out the part between 0.5s and 1.5s", 1, func(s float64) float64 { return map[bool]float64{true: s, false: s + 1}[s < 0.5] }},
		{"make it a boomerang", 4, func(s float64) float64 { return min(s, 3.9-s) }},
		{"slow motion from 0.5 to 1.5 seconds", 3, func(s float64) float64 { return s - min(max(s-0.5, 0), 2)/2 }},
		{"speed up the first second 2x", 1.5, func(s float64) float64 { return min(2*s, s+0.5) }},
		{"freeze at 0.5 s for 1 second", 3, func(s float64) float64 { return max(min(s, 0.4), s-1) }},
		{"keep the middle second", 1, func(s float64) float64 { return 0.5 + s }},
		{"only keep from 0.5 s", 1.5, func(s float64) float64 { return 0.5 + s }},
		{"trim half a second from both ends", 1, func(s float64) float64 { return 0.5 + s }},
		{"shorten it to 1 second by speeding it up", 1, func(s float64) float64 { return 2 * s }},
		{"remove the first half", 1, func(s float64) float64 { return 1 + s }},
		{"loop it and freeze the last frame for 1 second", 6, func(s float64) float64 { return min(math.Mod(s, 3), 1.9) }},
		{"loop it, then freeze for 1 second", 5, func(s float64) float64 { return min(math.Mod(min(s, 3.99), 2), 1.9) }},
		{"first 1 second, backward, 2x slower", 2, func(s float64) float64 { return 0.95 - s/2 }},
	} {
		t.Run(c.prompt, func(t *testing.T) {
			spec.Prompt = c.prompt
			path, outcome, err := attempt(t, t.Context(), spec)
			if err != nil || math.Abs(outcome.Duration.Seconds()-c.length) > 0.01 || outcome.Notice != "" {
				t.Fatalf("%+v, %v, want %g s", outcome, err, c.length)
			}
			after := frames(t, path, spec.Size)
			if want := int(c.length * 10); len(after) < want || len(after) > want+1 {
				t.Fatalf("%d frames, want %d", len(after), want)
			}
			for _, at := range []int{0, len(after) / 2, len(after) - 1} {
				best, nearest := 0, math.Inf(1)
				for i := range before {
					if d := pixeltest.Difference(before[i:i+1], after[at:at+1]); d < nearest {
						best, nearest = i, d
					}
				}
				if want := c.from(float64(at) / 10); math.Abs(float64(best)/10-want) > 0.15 {
					t.Errorf("at %.1f s, it shows the moment %.1f s, want %.2f s", float64(at)/10, float64(best)/10, want)
				}
			}
		})
	}
}

func TestTextAndBordersAreDrawn(t *testing.T) {
	spec := small(t, "")
	spec.Duration = 100 * time.Millisecond
	before := frames(t, run(t, spec), spec.Size)[0]
	changed := func(after picture, y0, y1 int) float64 {
		rows := image.Rect(0, y0, 320, y1)
		return before.Part(rows).Apart(after.Part(rows), 1)
	}
	for _, c := range []struct {
		prompt string
		holds  func(after picture) bool
	}{
		{`at the top, add the text "Hi"`, func(p picture) bool { return changed(p, 5, 30) > 2 && changed(p, 60, 180) < 2 }},
		{`Untertitel „Hallo Welt“`, func(p picture) bool { return changed(p, 150, 175) > 8 && changed(p, 0, 120) < 2 }},
		{"letterbox", func(p picture) bool { return p.Luma(160, 5) < 5 && p.Luma(160, 174) < 5 && changed(p, 30, 150) < 4 }},
		{`write "HELLO" on a red box`, func(p picture) bool { return p.Part(image.Rect(130, 150, 190, 172)).Hues(30, 30) > 0.7 }},
		{"a 20 px red border", func(p picture) bool {
			return p.Part(image.Rect(1, 1, 19, 179)).Hues(20, 29) > 0.9 && changed(p, 30, 150) < 40
		}},
		{"fade in", func(p picture) bool { return p.Luma(160, 60) < 30 }},
	} {
		spec.Prompt = c.prompt
		if after := frames(t, run(t, spec), spec.Size)[0]; !c.holds(after) {
			t.Errorf("%s: rows differ by %.1f at the top, %.1f in the middle, %.1f at the bottom",
				c.prompt, changed(after, 5, 30), changed(after, 60, 120), changed(after, 150, 175))
		}
	}
	spec.Prompt, spec.Reference = "put my logo in the top left corner", input(t, filepath.Join("..", "..", "..", "testdata", "reference.jpg"), true)
	after := frames(t, run(t, spec), spec.Size)[0]
	spec.Reference = input(t, mediatest.Image{Width: 3, Height: 900}.Make(t), true)
	run(t, spec)
	if changed(after, 10, 30) < 3 || changed(after, 60, 180) > 2.5 {
		t.Errorf("the logo changes the top by %.1f and the rest by %.1f", changed(after, 10, 30), changed(after, 60, 180))
	}
}

func TestSoundIsEdited(t *testing.T) {
	spec := small(t, "")
	spec.Duration = time.Second
	usual := mediatest.Loudness(t, run(t, spec))
	for prompt, holds := range map[string]func(float64) bool{
		"leiser":                            func(db float64) bool { return db < usual-4 },
		"fade in and out":                   func(db float64) bool { return db < usual-1 },
		"mute the first half second":        func(db float64) bool { return db < usual-1 && db > usual-8 },
		"louder for the last half second":   func(db float64) bool { return db > usual+1 },
		"quieter for the first half second": func(db float64) bool { return db < usual-0.4 && db > usual-3 },
	} {
		spec.Prompt = prompt
		if got := mediatest.Loudness(t, run(t, spec)); !holds(got) {
			t.Errorf("%s: %.1f dB, the input has %.1f dB", prompt, got, usual)
		}
	}
	silent := *spec.Data
	silent.Info.Audio = false
	spec.Data, spec.Prompt = &silent, "louder"
	_, outcome, err := attempt(t, t.Context(), spec)
	if err != nil || len(outcome.Understood) > 0 || !strings.Contains(outcome.Notice, "no sound") {
		t.Errorf("a clip without sound was made louder: %+v, %v", outcome, err)
	}
}

func TestSlowZoomEndsCloser(t *testing.T) {
	spec := small(t, "zoom in slowly 2x")
	spec.Duration = time.Second
	result := frames(t, run(t, spec), spec.Size)
	closer := decode(t, spec.Size, "-i", sample, "-vf", "fps=10,scale=320:180,crop=160:90,scale=320:180")
	if from, to := untouched(t, spec)[0].Apart(result[0], 1), closer[9].Apart(result[9], 1); from > 4 || to > 8 {
		t.Errorf("the first picture differs by %.1f from the clip, the last by %.1f from its middle", from, to)
	}
}

// A change is limited to the seconds that the prompt names.
func TestChangesAreLimitedToSeconds(t *testing.T) {
	spec := small(t, "")
	spec.Duration = time.Second
	before := frames(t, run(t, spec), spec.Size)
	for prompt, holds := range map[string]func(second float64) bool{
		"sepia for the first half second, then normal":   func(s float64) bool { return s < 0.5 },
		"in Schwarzweiß von Sekunde 0,3 bis 0,7":         func(s float64) bool { return s >= 0.3 && s < 0.7 },
		"rain in the last 0.5 seconds":                   func(s float64) bool { return s >= 0.5 },
		"mirror it, except for the last half second":     func(s float64) bool { return s < 0.5 },
		"mirror for the first half second":               func(s float64) bool { return s < 0.5 },
		"mirror it for the last quarter":                 func(s float64) bool { return s >= 0.75 },
		"a thick red border for the first half second":   func(s float64) bool { return s < 0.5 },
		"denoise it for the first half second":           func(float64) bool { return false },
		`the text "Hello" at the top, from 0.5 s to 1 s`: func(s float64) bool { return s >= 0.5 },
	} {
		spec.Prompt = prompt
		path, outcome, err := attempt(t, t.Context(), spec)
		if err != nil || outcome.Notice != "" {
			t.Fatalf("%s: %+v, %v", prompt, outcome, err)
		}
		for i, after := range frames(t, path, spec.Size) {
			top := image.Rect(80, 0, 240, 40)
			if d := before[i].Part(top).Apart(after.Part(top), 1); (d > 4) != holds(float64(i)/10) {
				t.Errorf("%s: at %.1f s, the picture differs by %.1f", prompt, float64(i)/10, d)
			}
		}
	}
}

func TestImpossibleEditsAreRejected(t *testing.T) {
	for _, c := range []struct {
		prompt string
		length time.Duration
		height int
		says   string
	}{
		{"slow motion 8x", time.Minute, 180, "480 seconds long. The limit is 300 seconds."},
		{"freeze at 0.1 s for 100 s", time.Second, 180, "101 seconds long. The limit is 61 seconds."},
		{"faster 16x, skip the first 1.9 seconds", 2 * time.Second, 180, "shorter than a frame"},
		{look.Reverse, 3 * time.Minute, 720, "too long to play backward"},
		{"upscale 2x, slow motion 8x", 30 * time.Second, 720, "at most 162 seconds long"},
	} {
		spec := small(t, c.prompt)
		spec.Duration, spec.Size = c.length, catalog.Size{Width: c.height * 16 / 9, Height: c.height}
		_, _, err := attempt(t, t.Context(), spec)
		if err == nil || !strings.Contains(engine.AsError(err).Message, c.says) {
			t.Errorf("%s: got %v", c.prompt, err)
		}
	}
}
