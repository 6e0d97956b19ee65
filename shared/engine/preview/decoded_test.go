package preview_test

import (
	"fmt"
	"math"
	"testing"

	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
)

// The converted clip is RGB. The original may have any color space.
func TestDecodedPicturesMatchConvertedOnes(t *testing.T) {
	prompts := []string{"warmer", "watercolor", "anime", "pencil sketch", "underwater"}
	for i, c := range []struct {
		name, matrix string
		codes        [3]int // of the matrix, the primaries and the transfer (ITU-T H.273)
	}{
		{name: "nothing said"},
		{"high definition", "bt709", [3]int{1, 1, 1}},
		{"NTSC", "smpte170m", [3]int{6, 6, 6}},
		{"sRGB", "bt709", [3]int{1, 1, 13}},
		{"logarithmic", "bt709", [3]int{1, 8, 9}},
		{"wide gamut", "bt709", [3]int{1, 9, 14}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clip := mediatest.Video{Width: box.Width, Height: box.Height, FPS: 10, Seconds: 0.2, Silent: true}
			if c.matrix != "" {
				clip.Args = []string{"-bsf:v", fmt.Sprintf("h264_metadata=matrix_coefficients=%d:colour_primaries=%d:"+
					"transfer_characteristics=%d", c.codes[0], c.codes[1], c.codes[2])}
			}
			given := input(t, clip.Make(t), false)
			if given.Info.PixelFormat != "yuv420p" || given.Info.Matrix != c.matrix && c.matrix != "" {
				t.Fatalf("the clip is reported as %+v", given.Info)
			}
			converted := *given
			converted.Info.PixelFormat = "" // as if it were unknown, which forces a conversion
			// The two most common color spaces are combined with every look, and each of the others with one look.
			asked := prompts
			if i >= 2 {
				asked = prompts[i%len(prompts):][:1]
			}
			var specs []engine.Spec
			for _, prompt := range asked {
				spec, as := small(t, prompt), small(t, prompt)
				spec.Data, as.Data = given, &converted
				specs = append(specs, spec, as)
			}
			results := edits(t, specs...)
			for i, prompt := range asked {
				if apart := apart(results[2*i][0], results[2*i+1][0]); apart > 3 {
					t.Errorf("%s: differs by %.2f of 255 from the converted clip", prompt, apart)
				}
			}
		})
	}
}

func apart(a, b picture) float64 {
	const side = 8
	var sum, n float64
	for y := 0; y+side <= a.height; y += side {
		for x := 0; x+side <= a.width; x += side {
			var d [3]float64
			for i := range side * side {
				r, g, bl := a.at(x+i%side, y+i/side)
				r2, g2, b2 := b.at(x+i%side, y+i/side)
				d[0], d[1], d[2] = d[0]+r-r2, d[1]+g-g2, d[2]+bl-b2
			}
			sum += (math.Abs(d[0]) + math.Abs(d[1]) + math.Abs(d[2])) / 3 / side / side
			n++
		}
	}
	return sum / n
}
