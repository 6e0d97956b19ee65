package preview_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
)

var box = catalog.Size{Width: 320, Height: 180}

// corners paints a picture's quarters red, green, blue and white.
const corners = "drawbox=c=red:t=fill:w=iw/2:h=ih/2,drawbox=c=lime:t=fill:x=iw/2:w=iw/2:h=ih/2," +
	"drawbox=c=blue:t=fill:y=ih/2:w=iw/2:h=ih/2,drawbox=c=white:t=fill:x=iw/2:y=ih/2:w=iw/2:h=ih/2"

func TestImageKeepsItsTransparentAreas(t *testing.T) {
	hole := "format=rgba,geq=r=200:g=30:b=30:a='255*gt(X,W/2)'"
	image := input(t, mediatest.Image{PixelFormat: "rgba", Filter: hole}.Make(t), true)
	spec := engine.Spec{Kind: catalog.Image, Prompt: "sharper", Data: image, Size: box}
	path := run(t, spec)
	alpha := decode(t, box, "-i", path, "-vf", "alphaextract,format=gray")[0]
	if left, right := alpha.Luma(40, 90), alpha.Luma(280, 90); left > 10 || right < 245 {
		t.Errorf("alpha is %.0f on the left, %.0f on the right; want 0 and 255", left, right)
	}
}

// Edits of the same scene in HDR and SDR must look about the same on a screen.
func TestHDRLooksLikeSDR(t *testing.T) {
	edit := func(clip mediatest.Video) picture {
		data := input(t, clip.Make(t), false)
		spec := engine.Spec{
			Kind: catalog.Edit, Prompt: "sharper", Data: data, Size: box, FPS: 10, Duration: 200 * time.Millisecond,
		}
		return frames(t, run(t, spec), box)[0]
	}
	ordinary := mediatest.Video{Source: "smptehdbars", Silent: true, Seconds: 0.2}
	high := ordinary
	high.Codec, high.PixelFormat, high.HDR = "libx265", "yuv420p10le", true
	// The same scene as an HDR camera stores it, with white at 203 cd/m2 (ITU-R BT.2408).
	high.Filter = "scale=out_color_matrix=bt709,format=yuv444p10le," +
		"setparams=color_primaries=bt709:color_trc=bt709:colorspace=bt709:range=tv,zscale=t=linear:npl=203,format=gbrpf32le,zscale=p=2020,zscale=t=smpte2084:m=2020_ncl:r=tv:npl=203,format=yuv420p10le"
	sdr, hdr := edit(ordinary), edit(high)
	if d := sdr.Apart(hdr, 1); d > 24 {
		t.Errorf("the tone-mapped clip differs by %.1f from the ordinary one", d)
	}
	if a, b := sdr.Measure(), hdr.Measure(); b.Color < 0.8*a.Color || math.Abs(a.Light-b.Light) > 10 {
		t.Errorf("light %.0f, color %.0f; the ordinary clip's are %.0f and %.0f", b.Light, b.Color, a.Light, a.Color)
	}
}

// Flashes and clicks that are simultaneous stay within a frame of each other.
func TestSoundStaysInSync(t *testing.T) {
	data := input(t, mediatest.Video{Flash: true, Source: "color=c=gray", Seconds: 2, FPS: 20}.Make(t), false)
	spec := engine.Spec{
		Kind: catalog.Edit, Prompt: "sharper", Data: data, Size: box, FPS: 20, Duration: data.Info.Duration,
	}
	path := run(t, spec)
	var flashes []float64
	pictures := frames(t, path, box)
	for i, p := range pictures {
		if p.Luma(160, 90) > 200 && (i == 0 || pictures[i-1].Luma(160, 90) <= 200) {
			flashes = append(flashes, float64(i)/20)
		}
	}
	var clicks []float64
	for i, v := range mediatest.Sound(t, path) {
		at := float64(i) / mediatest.SoundRate
		if math.Abs(float64(v)) > 12000 && (len(clicks) == 0 || at > clicks[len(clicks)-1]+0.25) {
			clicks = append(clicks, at)
		}
	}
	if len(flashes) != 4 || len(clicks) != 4 {
		t.Fatalf("flashes at %v, clicks at %v; want four each", flashes, clicks)
	}
	for i, at := range flashes {
		if math.Abs(at-float64(i)*mediatest.ClickEvery) > 0.05 || math.Abs(at-clicks[i]) > 0.05 {
			t.Errorf("flash at %.3f, click at %.3f; want both at %.1f", at, clicks[i], float64(i)*mediatest.ClickEvery)
		}
	}
}

func TestLooksSurviveSizeChange(t *testing.T) {
	part := func(size string) string {
		return mediatest.Write(t, slices.Concat(mediatest.Drawn(mediatest.Bars, size, "0.2"), mediatest.H264, []string{"a.ts"})...)
	}
	data := input(t, mediatest.Join(t, "a.ts", part("320x180"), part("160x90"), part("90x160")), false)
	for _, prompt := range []string{"vhs", "watercolor", "pencil sketch", "vintage film", "cyberpunk, pixel art"} {
		t.Run(prompt, func(t *testing.T) {
			spec := engine.Spec{
				Kind: catalog.Edit, Prompt: prompt, Seed: 1, Data: data, FPS: 20, Duration: data.Info.Duration, Size: box,
				Reference: input(t, reference, true),
			}
			checkVideo(t, run(t, spec), spec, false)
		})
	}
}

// A clip whose frames are damaged must fail soon, although the look draws a picture for every frame.
func TestClipWithoutFramesFailsSoon(t *testing.T) {
	path := mediatest.Write(t, slices.Concat(mediatest.Drawn(mediatest.Bars, "320x180", "1"), strings.Fields("-pix_fmt yuv420p -c:v libx265 -preset ultrafast a.mp4"))...)
	spec := small(t, "rain")
	spec.Data = input(t, path, false)
	mediatest.Change(t, path, func(movie []byte) bool {
		from, to := strings.Index(string(movie), "mdat")+4, strings.Index(string(movie), "moov")-4
		for i := from; i < to; i++ {
			movie[i] = 0xff
		}
		return from < to
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, _, err := attempt(t, ctx, spec); engine.AsError(err).Code != job.InvalidInput {
		t.Errorf("got %v, want an invalid input", err)
	}
}

func near(a, b []float64, most float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= most })
}

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
