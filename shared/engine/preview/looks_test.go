package preview_test

import (
	"image"
	"maps"
	"slices"
	"testing"

	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/testkit/pixeltest"
)

// shown has the input's first frame, the result's first one, and how alike they are. moved is how much the result's
// second frame differs from its first one.
type shown struct {
	old, first  picture
	like, moved float64
}

// properties has the properties of looks and changes, by their prompts. b and a are measurements of the first frame
// before and after the edit.
var properties = map[string]func(b, a traits, s shown) bool{
	"watercolor": func(b, a traits, s shown) bool {
		return a.Borders > 225 && b.Borders < 110 && a.Light > b.Light+15 && a.Black > b.Black+20 &&
			a.Grain > 1.5*b.Grain
	},
	"oil painting": func(b, a traits, s shown) bool { return a.Grain > 5*b.Grain && s.like > 0.6 },
	"impressionist": func(b, a traits, s shown) bool {
		return a.Grain > 5*b.Grain && s.first.Hues(45, 280, 65) > s.old.Hues(45, 280, 65)
	},
	"pencil sketch": func(b, a traits, s shown) bool {
		return a.Light > 180 && a.White > 240 && a.Black < 90 && a.Edges > 5*b.Edges && s.like > 0.4
	},
	"charcoal": func(b, a traits, s shown) bool {
		return a.Grain > 5*b.Grain && a.Black < b.Black && a.Contrast > b.Contrast
	},
	"anime": func(b, a traits, s shown) bool { return a.Color > 1.4*b.Color && s.like > 0.7 },
	"comic": func(b, a traits, s shown) bool { return a.Color > 1.4*b.Color && a.Black < b.Black/2 },
	"pixel art": func(b, a traits, s shown) bool {
		in, between := s.first.Blockiness(2)
		return in < 0.2*between && s.like > 0.7 && a.Grain > 2.5*b.Grain
	},
	"autumn": func(b, a traits, s shown) bool { return a.Warmth > b.Warmth+50 && s.moved > 1.9 },
	"spring": func(b, a traits, s shown) bool {
		return a.Red > b.Red+30 && s.first.Hues(50, 350) > 0.5 && s.moved > 2
	},
	"winter": func(b, a traits, s shown) bool { return a.Light > b.Light+20 && a.Borders > b.Borders+50 },
	"underwater": func(b, a traits, s shown) bool {
		return a.Warmth < -40 && s.first.Hues(50, 225) > 0.8 && a.Middle > 2*a.Borders
	},
	"golden hour": func(b, a traits, s shown) bool { return a.Warmth > b.Warmth+25 && s.first.Hues(40, 55) > 0.6 },
	"sunset": func(b, a traits, s shown) bool {
		return a.Color > 1.6*b.Color && s.first.Hues(75, 5) > 0.8 && a.Light < b.Light-15
	},
	"night": func(b, a traits, s shown) bool { return a.Light < b.Light/1.6 && a.Warmth < -15 },
	"rain":  func(b, a traits, s shown) bool { return a.Grain > 2.5*b.Grain && s.moved > 4 },
	"fog":   func(b, a traits, s shown) bool { return a.Color < 0.6*b.Color && a.Edges < 0.7*b.Edges },
	"fire": func(b, a traits, s shown) bool {
		floor := image.Rect(0, s.old.Height*5/6, s.old.Width, s.old.Height)
		return s.first.Hues(40, 55) > 0.9 && a.Warmth > b.Warmth+70 &&
			s.first.Part(floor).Measure().Light > s.old.Part(floor).Measure().Light+20
	},
	"cyberpunk neon": func(b, a traits, s shown) bool {
		return s.first.Hues(40, 340, 215) > 0.6 && a.Light < b.Light-40
	},
	"dreamy": func(b, a traits, s shown) bool {
		return a.Edges < 0.75*b.Edges && a.Light > b.Light+25 && a.Black > b.Black+35
	},
	"horror": func(b, a traits, s shown) bool { return a.Light < 0.65*b.Light && a.Middle > 4*a.Borders },
	"cinematic": func(b, a traits, s shown) bool {
		return s.first.Hues(35, 48, 240) > s.old.Hues(35, 48, 240)+0.05 && a.Contrast > b.Contrast &&
			a.Black < b.Black
	},
	"film noir": func(b, a traits, s shown) bool { return a.Color < 2 && a.Black < 8 },
	"sepia": func(b, a traits, s shown) bool {
		return s.first.Hues(30, 72) > 0.9 && a.Warmth > 40 && a.Tones < b.Tones/2
	},
	"old movie": func(b, a traits, s shown) bool { return a.Color < 0.3*b.Color && s.moved > 8 },
	"vintage film": func(b, a traits, s shown) bool {
		return a.White < b.White && a.Contrast < b.Contrast && s.moved > 8
	},
	"enhanced": func(b, a traits, s shown) bool { return a.Contrast > 1.05*b.Contrast && s.like > 0.9 },
	"vhs": func(b, a traits, s shown) bool {
		return a.Edges > 3*b.Edges && a.White < b.White-15 && s.moved > 6
	},
	"a hint of film noir": func(b, a traits, _ shown) bool { return a.Color > 0.3*b.Color && a.Color < 0.7*b.Color },
	"more vivid":          func(b, a traits, _ shown) bool { return a.Color > 1.4*b.Color },
	"high contrast":       func(b, a traits, _ shown) bool { return a.Contrast > 1.15*b.Contrast },
	"tint it green":       func(b, a traits, _ shown) bool { return a.Green-a.Red > b.Green-b.Red+60 },
	"invert":              func(b, a traits, _ shown) bool { return b.Middle > b.Borders && a.Middle < a.Borders },
}

func TestLooksHaveTheirProperties(t *testing.T) {
	for _, name := range look.Names() {
		if properties[name] == nil {
			t.Errorf("no property of the look %s is tested", name)
		}
	}
	old := untouched(t, small(t, ""))
	before, prompts := old[0].Measure(), slices.Sorted(maps.Keys(properties))
	var specs []engine.Spec
	for _, prompt := range prompts {
		specs = append(specs, small(t, prompt))
	}
	for i, result := range edits(t, specs...) {
		t.Run(prompts[i], func(t *testing.T) {
			if len(result) != 2 {
				t.Fatalf("%d frames, want 2", len(result))
			}
			if d := pixeltest.Difference(old, result); d < 8 {
				t.Errorf("differs from the input by %.1f, want at least 8", d)
			}
			s := shown{old[0], result[0], old[0].Likeness(result[0]), result[0].Apart(result[1], 1)}
			if after := result[0].Measure(); !properties[prompts[i]](before, after, s) {
				t.Errorf("got\nbefore %+v\nafter  %+v", before, after)
			}
		})
	}
}
