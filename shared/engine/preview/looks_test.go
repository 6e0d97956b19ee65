package preview_test

import (
	"image"
	"testing"

	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/look"
)

type edited struct {
	before, after traits
	// first and second are frames of the result. old is the input's first frame.
	old, first, second picture
}

var properties = map[string]func(e edited) bool{
	"watercolor": func(e edited) bool {
		return e.after.borders > 225 && e.before.borders < 110 &&
			e.after.light > e.before.light+15 && e.after.black > e.before.black+20 && e.after.grain > 1.5*e.before.grain
	},
	"oil painting": func(e edited) bool { return e.after.grain > 5*e.before.grain && likeness(e.old, e.first) > 0.6 },
	"impressionist": func(e edited) bool {
		return e.after.grain > 5*e.before.grain && hues(e.first, 45, 280, 65) > hues(e.old, 45, 280, 65)
	},
	"pencil sketch": func(e edited) bool {
		return e.after.light > 180 && e.after.white > 240 &&
			e.after.black < 90 && e.after.edges > 5*e.before.edges && likeness(e.old, e.first) > 0.4
	},
	"charcoal": func(e edited) bool {
		return e.after.grain > 5*e.before.grain &&
			e.after.black < e.before.black && e.after.contrast > e.before.contrast
	},
	"anime": func(e edited) bool { return e.after.color > 1.4*e.before.color && likeness(e.old, e.first) > 0.7 },
	"comic": func(e edited) bool { return e.after.color > 1.4*e.before.color && e.after.black < e.before.black/2 },
	"pixel art": func(e edited) bool {
		in, between := blockiness(e.first, 2)
		return in < 0.2*between && likeness(e.old, e.first) > 0.7 && e.after.grain > 2.5*e.before.grain
	},
	"autumn": func(e edited) bool { return e.after.warmth > e.before.warmth+50 && between(e.first, e.second) > 1.9 },
	"spring": func(e edited) bool {
		return e.after.red > e.before.red+30 && hues(e.first, 50, 350) > 0.5 &&
			between(e.first, e.second) > 2
	},
	"winter": func(e edited) bool {
		return e.after.light > e.before.light+20 && e.after.borders > e.before.borders+50
	},
	"underwater": func(e edited) bool {
		return e.after.warmth < -40 && hues(e.first, 50, 225) > 0.8 && e.after.middle > 2*e.after.borders
	},
	"golden hour": func(e edited) bool { return e.after.warmth > e.before.warmth+25 && hues(e.first, 40, 55) > 0.6 },
	"sunset": func(e edited) bool {
		return e.after.color > 1.6*e.before.color && hues(e.first, 75, 5) > 0.8 && e.after.light < e.before.light-15
	},
	"night": func(e edited) bool { return e.after.light < e.before.light/1.6 && e.after.warmth < -15 },
	"rain":  func(e edited) bool { return e.after.grain > 2.5*e.before.grain && between(e.first, e.second) > 4 },
	"fog":   func(e edited) bool { return e.after.color < 0.6*e.before.color && e.after.edges < 0.7*e.before.edges },
	"fire": func(e edited) bool {
		floor := image.Rect(0, e.old.height*5/6, e.old.width, e.old.height)
		return hues(e.first, 40, 55) > 0.9 && e.after.warmth > e.before.warmth+70 &&
			measure(e.first.part(floor)).light > measure(e.old.part(floor)).light+20
	},
	"cyberpunk neon": func(e edited) bool {
		return hues(e.first, 40, 340, 215) > 0.6 && e.after.light < e.before.light-40
	},
	"dreamy": func(e edited) bool {
		return e.after.edges < 0.75*e.before.edges &&
			e.after.light > e.before.light+25 && e.after.black > e.before.black+35
	},
	"horror": func(e edited) bool { return e.after.light < 0.65*e.before.light && e.after.middle > 4*e.after.borders },
	"cinematic": func(e edited) bool {
		return hues(e.first, 35, 48, 240) > hues(e.old, 35, 48, 240)+0.05 &&
			e.after.contrast > e.before.contrast && e.after.black < e.before.black
	},
	"film noir": func(e edited) bool { return e.after.color < 2 && e.after.black < 8 },
	"sepia": func(e edited) bool {
		return hues(e.first, 30, 72) > 0.9 && e.after.warmth > 40 && e.after.tones < e.before.tones/2
	},
	"old movie": func(e edited) bool { return e.after.color < 0.3*e.before.color && between(e.first, e.second) > 8 },
	"vintage film": func(e edited) bool {
		return e.after.white < e.before.white && e.after.contrast < e.before.contrast &&
			between(e.first, e.second) > 8
	},
	"enhanced": func(e edited) bool {
		return e.after.contrast > 1.05*e.before.contrast && likeness(e.old, e.first) > 0.9
	},
	"vhs": func(e edited) bool {
		return e.after.edges > 3*e.before.edges &&
			e.after.white < e.before.white-15 && between(e.first, e.second) > 6
	},
}

func TestLooksHaveTheirProperties(t *testing.T) {
	old := untouched(t, small(t, ""))
	before := measure(old[0])
	names := look.Names()
	var specs []engine.Spec
	for _, name := range names {
		specs = append(specs, small(t, name))
	}
	results := edits(t, specs...)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			holds, ok := properties[name]
			if !ok {
				t.Fatal("no property of this look is tested")
			}
			result := results[i]
			if len(result) != 2 {
				t.Fatalf("%d frames, want 2", len(result))
			}
			if d := difference(old, result); d < 8 {
				t.Errorf("differs from the input by %.1f, want at least 8", d)
			}
			e := edited{before, measure(result[0]), old[0], result[0], result[1]}
			if !holds(e) {
				t.Errorf("got\nbefore %+v\nafter  %+v", e.before, e.after)
			}
		})
	}
}

func TestModifiersChangePicture(t *testing.T) {
	old := untouched(t, small(t, ""))
	before := measure(old[0])
	modifiers := []struct {
		prompt string
		holds  func(before, after traits) bool
	}{
		{"a hint of film noir", func(b, a traits) bool { return a.color > 0.3*b.color && a.color < 0.7*b.color }},
		{"more vivid", func(b, a traits) bool { return a.color > 1.4*b.color }},
		{"high contrast", func(b, a traits) bool { return a.contrast > 1.15*b.contrast }},
		{"tint it green", func(b, a traits) bool { return a.green-a.red > b.green-b.red+60 }},
		{"invert", func(b, a traits) bool { return b.middle > b.borders && a.middle < a.borders }},
	}
	var specs []engine.Spec
	for _, c := range modifiers {
		specs = append(specs, small(t, c.prompt))
	}
	results := edits(t, specs...)
	for i, c := range modifiers {
		t.Run(c.prompt, func(t *testing.T) {
			result := results[i]
			after := measure(result[0])
			if !c.holds(before, after) {
				t.Errorf("got\nbefore %+v\nafter  %+v", before, after)
			}
			if d := difference(old, result); d < 8 {
				t.Errorf("differs from the input by %.1f, want at least 8", d)
			}
		})
	}
}
