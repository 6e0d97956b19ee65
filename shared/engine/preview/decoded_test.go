package preview_test

import (
	"fmt"
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
				if apart := results[2*i][0].Apart(results[2*i+1][0], 8); apart > 3 {
					t.Errorf("%s: differs by %.2f of 255 from the converted clip", prompt, apart)
				}
			}
		})
	}
}
