package preview_test

import (
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/person"
)

// Areas of the clip of a person, at 512x288 pixels.
var (
	head = image.Rect(180, 25, 270, 115)
	wall = image.Rect(380, 4, 500, 100)
)

func portrait(t testing.TB, prompt string) engine.Spec {
	return engine.Spec{
		Kind: catalog.Edit, Prompt: prompt, Seed: 7, Data: input(t, personClip, false),
		Size: catalog.Size{Width: 512, Height: 288}, FPS: 10, Duration: 300 * time.Millisecond,
	}
}

// The head does not change unless it is the subject. The wall behind it changes as the prompt says.
func TestBackgroundAndPersonAreEditedSeparately(t *testing.T) {
	for _, c := range []struct {
		prompt    string
		reference string
		subject   image.Rectangle // the area that changes
		holds     func(before, after traits) bool
	}{
		{"背景虚化", "", wall, func(b, a traits) bool { return a.Grain < 0.5*b.Grain }},
		{"black and white background, person in color", "", wall, func(_, a traits) bool { return a.Color < 6 }},
		{"make everything sepia except the person", "", wall, func(b, a traits) bool { return a.Warmth > b.Warmth+15 }},
		{"green screen", "", wall, func(_, a traits) bool { return a.Green > 150 && a.Red < 20 && a.Contrast < 5 }},
		{"fondo azul", "", wall, func(_, a traits) bool { return a.Blue > 240 && a.Red < 12 && a.Contrast < 5 }},
		{"use this image as the background", reference, wall, func(b, a traits) bool { return a.Light < b.Light-30 }},
		{"blur the background, backward", "", wall, func(b, a traits) bool { return a.Grain < 0.5*b.Grain }},
		{"black and white only on the person", "", head, func(_, a traits) bool { return a.Color < 8 }},
	} {
		t.Run(c.prompt, func(t *testing.T) {
			spec := portrait(t, c.prompt)
			if c.reference != "" {
				spec.Reference = input(t, c.reference, true)
			}
			path, outcome, err := attempt(t, t.Context(), spec, func(engine.Progress) {})
			if err != nil || len(outcome.Understood) == 0 || outcome.Notice != "" {
				t.Fatalf("%+v, %v", outcome, err)
			}
			after, before := frames(t, path, spec.Size), untouched(t, spec)
			if len(after) != 3 {
				t.Fatalf("%d frames, want 3", len(after))
			}
			kept := map[image.Rectangle]image.Rectangle{wall: head, head: wall}[c.subject]
			if b, a := before[1].Part(c.subject).Measure(), after[1].Part(c.subject).Measure(); !c.holds(b, a) {
				t.Errorf("from %+v to %+v", b, a)
			}
			if d := before[1].Part(kept).Apart(after[1].Part(kept), 1); d > 4 {
				t.Errorf("the rest changes by %.1f", d)
			}
		})
	}
}

// The result is a PNG whose background is transparent.
func TestImageBackgroundsAreRemoved(t *testing.T) {
	still := filepath.Join(t.TempDir(), "still.png")
	mediatest.Run(t, "-i", personClip, "-frames:v", "1", still)
	spec := portrait(t, "remove the background")
	spec.Kind, spec.Data = catalog.Image, input(t, still, true)
	file, err := os.Open(run(t, spec))
	require(t, err)
	defer file.Close()
	result, err := png.Decode(file)
	require(t, err)
	for area, want := range map[image.Rectangle]uint32{head.Inset(8): 0xffff, wall: 0} {
		for y := area.Min.Y; y < area.Max.Y; y += 5 {
			for x := area.Min.X; x < area.Max.X; x += 5 {
				if _, _, _, alpha := result.At(x, y).RGBA(); alpha != want {
					t.Fatalf("alpha at %d, %d is %#x, want %#x", x, y, alpha, want)
				}
			}
		}
	}
}

// Eyes and mouth survive looks that paint over small details.
func TestFacesSurvivePainting(t *testing.T) {
	eyes := image.Rect(185, 70, 265, 135)
	for _, prompt := range []string{"watercolor", "oil painting", "impressionist", "underwater"} {
		spec := portrait(t, prompt)
		spec.Duration = 100 * time.Millisecond
		kept := untouched(t, spec)[0].Part(eyes).Details(frames(t, run(t, spec), spec.Size)[0].Part(eyes))
		t.Logf("%s: the details of the face correlate by %.2f", prompt, kept)
		if kept < 0.6 {
			t.Errorf("%s: the details of the face correlate by %.2f, want at least 0.6", prompt, kept)
		}
	}
}

// Each limit is twice the measured average change between consecutive masks.
func TestMasksDoNotFlicker(t *testing.T) {
	size := catalog.Size{Width: 256, Height: 144}
	for _, c := range []struct {
		name, filters string
		most          float64
	}{
		{"a noisy still", "trim=end_frame=1,loop=11:1,noise=alls=12:allf=t:all_seed=1,scale=256:144:flags=area", 0.008},
		{"a pan", "trim=end_frame=12,scale=256:144:flags=area", 0.02},
	} {
		finder, err := person.NewFinder(size)
		require(t, err)
		shown := decode(t, size, "-i", personClip, "-vf", c.filters, "-frames:v", "12")
		sum, last := 0.0, []uint8(nil)
		for _, p := range shown {
			mask := make([]uint8, size.Width*size.Height)
			finder.Mask(p.Pixels, mask)
			for i, v := range last {
				sum += math.Abs(float64(v)-float64(mask[i])) / 255 / float64(len(mask)*(len(shown)-1))
			}
			last = mask
		}
		t.Logf("%s: the mask changes by %.4f from frame to frame", c.name, sum)
		if sum > c.most {
			t.Errorf("%s: the mask changes by %.4f from frame to frame, want at most %.4f", c.name, sum, c.most)
		}
	}
}
