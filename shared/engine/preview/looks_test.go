package preview_test

import (
	"errors"
	"image"
	"testing"

	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/testkit/pixeltest"
)

// shows reports whether a result has a look's property. The pictures are the input's first frame and two frames of the
// result. It returns an error for an unknown look.
func shows(name string, old, first, second picture) (holds bool, err error) {
	b, a := old.Measure(), first.Measure()
	like, moved := old.Likeness(first), first.Apart(second, 1)
	switch name {
	case "watercolor":
		return a.Borders > 225 && b.Borders < 110 && a.Light > b.Light+15 && a.Black > b.Black+20 &&
			a.Grain > 1.5*b.Grain, nil
	case "oil painting":
		return a.Grain > 5*b.Grain && like > 0.6, nil
	case "impressionist":
		return a.Grain > 5*b.Grain && first.Hues(45, 280, 65) > old.Hues(45, 280, 65), nil
	case "pencil sketch":
		return a.Light > 180 && a.White > 240 && a.Black < 90 && a.Edges > 5*b.Edges && like > 0.4, nil
	case "charcoal":
		return a.Grain > 5*b.Grain && a.Black < b.Black && a.Contrast > b.Contrast, nil
	case "anime":
		return a.Color > 1.4*b.Color && like > 0.7, nil
	case "comic":
		return a.Color > 1.4*b.Color && a.Black < b.Black/2, nil
	case "pixel art":
		in, between := first.Blockiness(2)
		return in < 0.2*between && like > 0.7 && a.Grain > 2.5*b.Grain, nil
	case "autumn":
		return a.Warmth > b.Warmth+50 && moved > 1.9, nil
	case "spring":
		return a.Red > b.Red+30 && first.Hues(50, 350) > 0.5 && moved > 2, nil
	case "winter":
		return a.Light > b.Light+20 && a.Borders > b.Borders+50, nil
	case "underwater":
		return a.Warmth < -40 && first.Hues(50, 225) > 0.8 && a.Middle > 2*a.Borders, nil
	case "golden hour":
		return a.Warmth > b.Warmth+25 && first.Hues(40, 55) > 0.6, nil
	case "sunset":
		return a.Color > 1.6*b.Color && first.Hues(75, 5) > 0.8 && a.Light < b.Light-15, nil
	case "night":
		return a.Light < b.Light/1.6 && a.Warmth < -15, nil
	case "rain":
		return a.Grain > 2.5*b.Grain && moved > 4, nil
	case "fog":
		return a.Color < 0.6*b.Color && a.Edges < 0.7*b.Edges, nil
	case "fire":
		floor := image.Rect(0, old.Height*5/6, old.Width, old.Height)
		return first.Hues(40, 55) > 0.9 && a.Warmth > b.Warmth+70 &&
			first.Part(floor).Measure().Light > old.Part(floor).Measure().Light+20, nil
	case "cyberpunk neon":
		return first.Hues(40, 340, 215) > 0.6 && a.Light < b.Light-40, nil
	case "dreamy":
		return a.Edges < 0.75*b.Edges && a.Light > b.Light+25 && a.Black > b.Black+35, nil
	case "horror":
		return a.Light < 0.65*b.Light && a.Middle > 4*a.Borders, nil
	case "cinematic":
		return first.Hues(35, 48, 240) > old.Hues(35, 48, 240)+0.05 && a.Contrast > b.Contrast &&
			a.Black < b.Black, nil
	case "film noir":
		return a.Color < 2 && a.Black < 8, nil
	case "sepia":
		return first.Hues(30, 72) > 0.9 && a.Warmth > 40 && a.Tones < b.Tones/2, nil
	case "old movie":
		return a.Color < 0.3*b.Color && moved > 8, nil
	case "vintage film":
		return a.White < b.White && a.Contrast < b.Contrast && moved > 8, nil
	case "enhanced":
		return a.Contrast > 1.05*b.Contrast && like > 0.9, nil
	case "vhs":
		return a.Edges > 3*b.Edges && a.White < b.White-15 && moved > 6, nil
	}
	return false, errors.New("no property of this look is tested")
}

func TestLooksHaveTheirProperties(t *testing.T) {
	old := untouched(t, small(t, ""))
	before := old[0].Measure()
	names := look.Names()
	var specs []engine.Spec
	for _, name := range names {
		specs = append(specs, small(t, name))
	}
	results := edits(t, specs...)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			result := results[i]
			if len(result) != 2 {
				t.Fatalf("%d frames, want 2", len(result))
			}
			if d := pixeltest.Difference(old, result); d < 8 {
				t.Errorf("differs from the input by %.1f, want at least 8", d)
			}
			if holds, err := shows(name, old[0], result[0], result[1]); !holds || err != nil {
				t.Errorf("%v, got\nbefore %+v\nafter  %+v", err, before, result[0].Measure())
			}
		})
	}
}

func TestModifiersChangePicture(t *testing.T) {
	old := untouched(t, small(t, ""))
	before := old[0].Measure()
	modifiers := []struct {
		prompt string
		holds  func(before, after traits) bool
	}{
		{"a hint of film noir", func(b, a traits) bool { return a.Color > 0.3*b.Color && a.Color < 0.7*b.Color }},
		{"more vivid", func(b, a traits) bool { return a.Color > 1.4*b.Color }},
		{"high contrast", func(b, a traits) bool { return a.Contrast > 1.15*b.Contrast }},
		{"tint it green", func(b, a traits) bool { return a.Green-a.Red > b.Green-b.Red+60 }},
		{"invert", func(b, a traits) bool { return b.Middle > b.Borders && a.Middle < a.Borders }},
	}
	var specs []engine.Spec
	for _, c := range modifiers {
		specs = append(specs, small(t, c.prompt))
	}
	results := edits(t, specs...)
	for i, c := range modifiers {
		t.Run(c.prompt, func(t *testing.T) {
			result := results[i]
			after := result[0].Measure()
			if !c.holds(before, after) {
				t.Errorf("got\nbefore %+v\nafter  %+v", before, after)
			}
			if d := pixeltest.Difference(old, result); d < 8 {
				t.Errorf("differs from the input by %.1f, want at least 8", d)
			}
		})
	}
}
