package preview_test

import (
	"image"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/testkit/pixeltest"
)

// played has the frames of an input and of its edit, and measurements of the first ones.
type played struct {
	before, after []picture
	old, now      traits
	path          string
}

// changed returns how much an area of the first frame changes.
func (p played) changed(area image.Rectangle) float64 {
	return p.before[0].Part(area).Apart(p.after[0].Part(area), 1)
}

// typed returns a request for 0.4 seconds of a clip, for its first picture, or for a text to video. It keeps the picture
// in the folder for later calls.
func typed(t *testing.T, folder string, kind catalog.Kind, prompt, clip string) engine.Spec {
	spec := small(t, prompt)
	spec.Kind, spec.Data, spec.Duration = kind, nil, 400*time.Millisecond
	if clip == personClip {
		spec.Size = catalog.Size{Width: 512, Height: 288}
	}
	switch kind {
	case catalog.Edit:
		spec.Data = input(t, clip, false)
	case catalog.Image:
		still := filepath.Join(folder, filepath.Base(clip)+".png")
		if _, err := os.Stat(still); err != nil {
			mediatest.Run(t, "-i", clip, "-frames:v", "1", still)
		}
		spec.Data, spec.FPS, spec.Duration = input(t, still, true), 0, 0
	}
	return spec
}

// A new user types these prompts first. Each does what it says, or its notice says that it does not.
func TestFirstPromptsDoWhatTheySay(t *testing.T) {
	const text, clip, both = 1, 2, 3 // text to video, a clip, a clip and a picture
	folder := t.TempDir()
	scenery := func(prompt string) picture {
		spec := typed(t, folder, catalog.TextToVideo, prompt, "")
		return frames(t, run(t, spec), spec.Size)[0]
	}
	for _, c := range []struct {
		of                  int
		prompt, from        string
		understood, ignored string
		holds               func(p played) bool // nil if the input stays unchanged
	}{
		{text, "a red sports car in the city", "", "city", "red sports car", func(p played) bool { return p.after[0].Apart(scenery("the ocean"), 1) > 8 }},
		{text, "sunset over the ocean", "", "bay; sunset", "", func(p played) bool { return p.now.Warmth > 20 && p.after[0].Apart(scenery("the ocean"), 1) > 8 }},
		{both, "crop to 9:16 for TikTok", personClip, "crop to 9:16", "", func(p played) bool {
			cut, nearest, left := frames(t, p.path, catalog.Size{Width: 162, Height: 288})[0], math.Inf(1), 0
			for x := 0; x <= 512-cut.Width; x += 5 {
				if d := p.before[0].Part(image.Rect(x, 0, x+cut.Width, 288)).Apart(cut, 1); d < nearest {
					nearest, left = d, x
				}
			}
			middle := left + cut.Width/2
			return p.after[0].Width*16 == p.after[0].Height*9 && head.Min.X+15 < middle && middle < head.Max.X-15
		}},
		{both, "fit into 9:16 with blurred bars", sample, "fit into 9:16 with blurred bars", "", func(p played) bool {
			bars := p.after[0].Part(image.Rect(0, 0, p.after[0].Width, p.after[0].Height/4)).Measure()
			return p.after[0].Width*16 == p.after[0].Height*9 && bars.Light > 30 && bars.Edges < p.old.Edges
		}},
		{both, `put "SALE!" at the top in red`, sample, "red text “SALE!”", "", func(p played) bool {
			old, now := p.before[0].Part(image.Rect(100, 5, 220, 30)).Measure(), p.after[0].Part(image.Rect(100, 5, 220, 30)).Measure()
			return now.Red-now.Blue > old.Red-old.Blue+10 && p.changed(image.Rect(0, 60, 320, 180)) < 3
		}},
		{clip, "remove the background", personClip, "white background", "", func(p played) bool { return p.after[0].Part(wall).Measure().Black > 245 && p.changed(head) < 4 }},
		{both, "make the background a beach at sunset", personClip, "background: bay, sunset", "", func(p played) bool {
			return p.after[0].Part(wall).Measure().Color > p.before[0].Part(wall).Measure().Color+40 && p.changed(head) < 4
		}},
		{both, "change her dress to green", personClip, "", "change her dress to green", nil},
		{both, "don't change anything", sample, "", "", nil},
		{clip, "make it 10 seconds long", sample, "", "", nil},
	} {
		kinds := map[int][]catalog.Kind{text: {catalog.TextToVideo}, clip: {catalog.Edit}, both: {catalog.Edit, catalog.Image}}[c.of]
		for _, kind := range kinds {
			t.Run(string(kind)+" "+c.prompt, func(t *testing.T) {
				spec := typed(t, folder, kind, c.prompt, c.from)
				path, outcome, err := attempt(t, t.Context(), spec)
				pixeltest.Require(t, err)
				if got := strings.Join(outcome.Understood, "; "); got != c.understood {
					t.Errorf("understood %q, want %q", got, c.understood)
				}
				done := job.Job{Result: &job.Result{Understood: outcome.Understood}}
				done.Request.Inputs = map[string]job.Input{catalog.DataField: {Blob: c.from}}
				if changed, _ := done.Changed(); changed != (c.holds != nil && kind != catalog.TextToVideo) {
					t.Errorf("changed is %t", changed)
				}
				notice := outcome.Notice
				switch follows := c.holds != nil && c.ignored == ""; {
				case follows && notice != "" && c.understood != "", !follows && notice == "", !strings.Contains(notice, c.ignored),
					strings.Contains(notice, "\ufe0f"), c.ignored == "" && c.holds == nil && strings.Contains(notice, "generative"),
					c.holds == nil && !strings.Contains(notice, "No"), c.understood == "" && notice == "":
					t.Errorf("the notice is %q", notice)
				}
				p := played{after: frames(t, path, outcome.Size), path: path}
				if p.before = p.after; spec.Data != nil {
					p.before = untouched(t, spec)
				}
				p.old, p.now = p.before[0].Measure(), p.after[0].Measure()
				switch {
				case c.holds == nil && pixeltest.Difference(p.before, p.after) > 2.5:
					t.Errorf("the picture changes by %.1f", pixeltest.Difference(p.before, p.after))
				case c.holds != nil && !c.holds(p):
					t.Errorf("from %+v to %+v", p.old, p.now)
				}
			})
		}
	}
}
