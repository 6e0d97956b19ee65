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
)

// played has the frames of an input and of its edit, and measurements of the first ones.
type played struct {
	before, after []picture
	old, now      traits
	outcome       engine.Outcome
	path          string
}

// changed returns how much an area of the first frame changes.
func (p played) changed(area image.Rectangle) float64 {
	return between(p.before[0].part(area), p.after[0].part(area))
}

func between(a, b picture) float64 { return difference([]picture{a}, []picture{b}) }

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
		{text, "a red sports car in the city", "", "city", "red sports car", func(p played) bool { return between(p.after[0], scenery("the ocean")) > 8 }},
		{text, "sunset over the ocean", "", "bay; sunset", "", func(p played) bool { return p.now.warmth > 20 && between(p.after[0], scenery("the ocean")) > 8 }},
		{both, "crop to 9:16 for TikTok", personClip, "crop to 9:16", "", func(p played) bool {
			cut, nearest, left := frames(t, p.path, catalog.Size{Width: 162, Height: 288})[0], math.Inf(1), 0
			for x := 0; x <= 512-cut.width; x += 5 {
				if d := between(p.before[0].part(image.Rect(x, 0, x+cut.width, 288)), cut); d < nearest {
					nearest, left = d, x
				}
			}
			middle := left + cut.width/2
			return p.after[0].width*16 == p.after[0].height*9 && head.Min.X+15 < middle && middle < head.Max.X-15
		}},
		{both, "fit into 9:16 with blurred bars", sample, "fit into 9:16 with blurred bars", "", func(p played) bool {
			bars := measure(p.after[0].part(image.Rect(0, 0, p.after[0].width, p.after[0].height/4)))
			return p.after[0].width*16 == p.after[0].height*9 && bars.light > 30 && bars.edges < p.old.edges
		}},
		{both, `put "SALE!" at the top in red`, sample, "red text “SALE!”", "", func(p played) bool {
			old, now := measure(p.before[0].part(image.Rect(100, 5, 220, 30))), measure(p.after[0].part(image.Rect(100, 5, 220, 30)))
			return now.red-now.blue > old.red-old.blue+10 && p.changed(image.Rect(0, 60, 320, 180)) < 3
		}},
		{clip, "remove the background", personClip, "white background", "", func(p played) bool { return measure(p.after[0].part(wall)).black > 245 && p.changed(head) < 4 }},
		{both, "make the background a beach at sunset", personClip, "background: bay, sunset", "", func(p played) bool {
			return measure(p.after[0].part(wall)).color > measure(p.before[0].part(wall)).color+40 && p.changed(head) < 4
		}},
		{both, "change her dress to green", personClip, "", "change her dress to green", nil},
		{both, "don't change anything", sample, "", "", nil},
	} {
		kinds := map[int][]catalog.Kind{text: {catalog.TextToVideo}, clip: {catalog.Edit}, both: {catalog.Edit, catalog.Image}}[c.of]
		for _, kind := range kinds {
			t.Run(string(kind)+" "+c.prompt, func(t *testing.T) {
				spec := typed(t, folder, kind, c.prompt, c.from)
				path, outcome, err := attempt(t, t.Context(), spec, func(engine.Progress) {})
				if err != nil {
					t.Fatal(err)
				}
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
				p := played{after: frames(t, path, outcome.Size), outcome: outcome, path: path}
				if p.before = p.after; spec.Data != nil {
					p.before = untouched(t, spec)
				}
				p.old, p.now = measure(p.before[0]), measure(p.after[0])
				switch {
				case c.holds == nil && difference(p.before, p.after) > 2.5:
					t.Errorf("the picture changes by %.1f", difference(p.before, p.after))
				case c.holds != nil && !c.holds(p):
					t.Errorf("from %+v to %+v", p.old, p.now)
				}
			})
		}
	}
}
