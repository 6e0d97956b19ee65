package preview_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
)

// The converted clip is RGB. The original may have any color space.
func TestDecodedPicturesMatchConvertedOnes(t *testing.T) {
	size := box
	for _, c := range []struct{ name, matrix, primaries, transfer string }{
		{name: "nothing said"},
		{"high definition", "bt709", "bt709", "bt709"},
		{"NTSC", "smpte170m", "smpte170m", "smpte170m"},
		{"PAL", "bt470bg", "bt470bg", "gamma28"},
		{"system M", "smpte170m", "bt470m", "gamma22"},
		{"sRGB", "bt709", "bt709", "iec61966-2-1"},
		{"xvYCC", "bt709", "bt709", "iec61966-2-4"},
		{"linear", "bt709", "bt709", "linear"},
		{"logarithmic", "bt709", "film", "log100"},
		{"the square root of a logarithm", "bt709", "smpte431", "log316"},
		{"extended gamut", "bt709", "smpte432", "bt1361e"},
		{"cinema", "bt709", "smpte428", "smpte428"},
		{"EBU", "bt470bg", "jedec-p22", "smpte240m"},
		{"wide gamut", "bt709", "bt2020", "bt2020-10"},
		{"a custom matrix", "fcc", "bt709", "bt709"},
		{"a matrix of high definition before", "smpte240m", "smpte240m", "smpte240m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clip := mediatest.Video{Width: size.Width, Height: size.Height, FPS: 10, Seconds: 0.2, Silent: true}
			if c.matrix != "" {
				clip.Args = []string{"-bsf:v", "h264_metadata=matrix_coefficients=" + number(t, c.matrix) +
					":colour_primaries=" + number(t, c.primaries) + ":transfer_characteristics=" + number(t, c.transfer)}
			}
			given := input(t, clip.Make(t), false)
			if given.Info.PixelFormat != "yuv420p" || given.Info.Matrix != c.matrix && c.matrix != "" {
				t.Fatalf("the clip is reported as %+v", given.Info)
			}
			converted := *given
			converted.Info.PixelFormat = "" // as if it were unknown, which forces a conversion
			for _, prompt := range []string{"warmer", "watercolor", "anime", "pencil sketch", "underwater"} {
				spec := engine.Spec{
					Kind: catalog.Edit, Prompt: prompt, Seed: 7, Size: size, FPS: 10, Duration: 200 * time.Millisecond,
				}
				as := spec
				spec.Data, as.Data = given, &converted
				both := edits(t, spec, as)
				if apart := apart(both[0][0], both[1][0]); apart > 3 {
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

// number returns the code point of a name of ITU-T H.273.
func number(t testing.TB, name string) string {
	t.Helper()
	for _, known := range strings.Fields(`bt709=1 bt470m=4 bt470bg=5 smpte170m=6 smpte240m=7 film=8 bt2020=9
		smpte428=10 smpte431=11 smpte432=12 jedec-p22=22 fcc=4 gamma22=4 gamma28=5 linear=8 log100=9 log316=10
		iec61966-2-4=11 bt1361e=12 iec61966-2-1=13 bt2020-10=14`) {
		if n, is := strings.CutPrefix(known, name+"="); is {
			return n
		}
	}
	t.Fatalf("no code point of %s", name)
	return ""
}
