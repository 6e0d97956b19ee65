package preview_test

import (
	"encoding/binary"
	"math"
	"os/exec"
	"slices"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
)

var box = catalog.Size{Width: 320, Height: 180}

// corners paints a picture's quarters red, green, blue and white.
const corners = "drawbox=c=red:t=fill:w=iw/2:h=ih/2,drawbox=c=lime:t=fill:x=iw/2:w=iw/2:h=ih/2," +
	"drawbox=c=blue:t=fill:y=ih/2:w=iw/2:h=ih/2,drawbox=c=white:t=fill:x=iw/2:y=ih/2:w=iw/2:h=ih/2"

func TestTypicalInputsAreEdited(t *testing.T) {
	for _, c := range []struct {
		name  string
		clip  mediatest.Video
		sound bool
		size  catalog.Size
		// seconds is the length of the input.
		seconds float64
	}{
		{"portrait", mediatest.Video{Width: 90, Height: 160}, true, catalog.Size{Width: 180, Height: 320}, 1},
		{
			"odd sides", mediatest.Video{Width: 151, Height: 83, PixelFormat: "yuv444p"}, true,
			catalog.Size{Width: 320, Height: 176}, 1,
		},
		{"very wide", mediatest.Video{Width: 640, Height: 32}, true, catalog.Size{Width: 320, Height: 16}, 1},
		{"60 pictures a second", mediatest.Video{FPS: 60}, true, catalog.Size{Width: 320, Height: 180}, 1},
		{"5 pictures a second", mediatest.Video{FPS: 5}, true, catalog.Size{Width: 320, Height: 180}, 1},
		{
			"high dynamic range", mediatest.Video{Codec: "libx265", PixelFormat: "yuv420p10le", HDR: true}, true,
			catalog.Size{Width: 320, Height: 180}, 1,
		},
		{
			"wide pixels", mediatest.Video{Width: 90, Height: 90, Filter: "setsar=16/9"}, true,
			catalog.Size{Width: 320, Height: 180}, 1,
		},
		{"six channels", mediatest.Video{Args: []string{"-ac", "6"}}, true, catalog.Size{Width: 320, Height: 180}, 1},
		{"sound of 8 kHz", mediatest.Video{Args: []string{"-ar", "8000"}}, true, catalog.Size{Width: 320, Height: 180}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data := input(t, c.clip.Make(t), false)
			spec := engine.Spec{
				Kind: catalog.Edit, Prompt: "golden hour", Seed: 1, Data: data, FPS: 20, Duration: data.Info.Duration,
				Size: box.Fit(catalog.Size{Width: data.Info.Width, Height: data.Info.Height}),
			}
			if spec.Size != c.size {
				t.Fatalf("the result must be %s, want %s", spec.Size, c.size)
			}
			if math.Abs(data.Info.Duration.Seconds()-c.seconds) > 0.11 {
				t.Fatalf("the input plays for %s, want %gs", data.Info.Duration, c.seconds)
			}
			checkVideo(t, run(t, spec), spec, c.sound)
		})
	}
}

// TestAlphaIsKeptOrWhite edits pictures with transparent areas: an image keeps them, a video shows white there.
func TestAlphaIsKeptOrWhite(t *testing.T) {
	hole := "format=rgba,geq=r=200:g=30:b=30:a='255*gt(X,W/2)'"
	image := input(t, mediatest.Image{PixelFormat: "rgba", Filter: hole}.Make(t), true)
	spec := engine.Spec{Kind: catalog.Image, Prompt: "sharper", Data: image, Size: box}
	path := run(t, spec)
	alpha := decode(t, box, "-i", path, "-vf", "alphaextract,format=gray")[0]
	if left, right := alpha.luma(40, 90), alpha.luma(280, 90); left > 10 || right < 245 {
		t.Errorf("alpha is %.0f on the left, %.0f on the right; want 0 and 255", left, right)
	}
	clip := mediatest.Video{Name: "clip.mov", Codec: "qtrle", PixelFormat: "argb", Filter: hole, Seconds: 0.3}.Make(t)
	data := input(t, clip, false)
	spec = engine.Spec{Kind: catalog.Edit, Prompt: "sharper", Data: data, Size: box, FPS: 10, Duration: data.Info.Duration}
	result := frames(t, run(t, spec), box)[0]
	if r, g, b := result.at(40, 90); min(r, g, b) < 205 {
		t.Errorf("the hole shows %.0f %.0f %.0f, want white", r, g, b)
	}
	if r, g, _ := result.at(280, 90); r < g+60 {
		t.Errorf("the rest shows red %.0f and green %.0f", r, g)
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
	if d := difference([]picture{sdr}, []picture{hdr}); d > 24 {
		t.Errorf("the tone-mapped clip differs by %.1f from the ordinary one", d)
	}
	if a, b := measure(sdr), measure(hdr); b.color < 0.8*a.color || math.Abs(a.light-b.light) > 10 {
		t.Errorf("light %.0f, color %.0f; the ordinary clip's are %.0f and %.0f", b.light, b.color, a.light, a.color)
	}
}

// Simultaneous flashes and clicks stay together to within a frame.
func TestSoundStaysInSync(t *testing.T) {
	data := input(t, mediatest.Video{Flash: true, Source: "color=c=gray", Seconds: 2, FPS: 20}.Make(t), false)
	spec := engine.Spec{
		Kind: catalog.Edit, Prompt: "sharper", Data: data, Size: box, FPS: 20, Duration: data.Info.Duration,
	}
	path := run(t, spec)
	var flashes []float64
	pictures := frames(t, path, box)
	for i, p := range pictures {
		if p.luma(160, 90) > 200 && (i == 0 || pictures[i-1].luma(160, 90) <= 200) {
			flashes = append(flashes, float64(i)/20)
		}
	}
	out, err := exec.CommandContext(
		t.Context(), "ffmpeg", "-v", "error", "-i", path, "-map", "0:a", "-ac", "1", "-ar", "8000", "-f", "s16le", "-",
	).Output()
	if err != nil {
		t.Fatal(err)
	}
	var clicks []float64
	for i := 0; i+1 < len(out); i += 2 {
		at := float64(i) / 2 / 8000
		if v := int16(binary.LittleEndian.Uint16(out[i:])); math.Abs(float64(v)) > 12000 &&
			(len(clicks) == 0 || at > clicks[len(clicks)-1]+0.25) {
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

// Video and audio start or end at different times. A still or silence fills the gaps.
func TestResultHasLengthOfLongerTrack(t *testing.T) {
	for _, c := range []struct {
		name string
		// args are ffmpeg arguments that read video and audio.
		args   []string
		frames int
	}{
		{
			"the sound ends first",
			[]string{"-f", "lavfi", "-i", "testsrc2=s=160x90:r=10:d=1", "-f", "lavfi", "-i", "sine=d=0.4"}, 20,
		},
		{
			"the picture ends first",
			[]string{"-f", "lavfi", "-i", "testsrc2=s=160x90:r=10:d=0.4", "-f", "lavfi", "-i", "sine=d=1"}, 20,
		},
		{
			"the picture begins late",
			[]string{"-itsoffset", "0.5", "-f", "lavfi", "-i", "testsrc2=s=160x90:r=10:d=0.5", "-f", "lavfi", "-i", "sine=d=1"},
			20,
		},
		{
			"the sound begins late",
			[]string{"-f", "lavfi", "-i", "testsrc2=s=160x90:r=10:d=1", "-itsoffset", "0.5", "-f", "lavfi", "-i", "sine=d=0.5"},
			20,
		},
	} {
		for _, container := range []string{"mp4", "ts"} {
			t.Run(c.name+" in "+container, func(t *testing.T) {
				t.Parallel()
				clip := write(t, slices.Concat(c.args, x264, []string{"clip." + container})...)
				data := input(t, clip, false)
				spec := engine.Spec{
					Kind: catalog.Edit, Prompt: "winter", Data: data, Size: box, FPS: 20, Duration: data.Info.Duration,
				}
				path := run(t, spec)
				if container == "mp4" { // a transport stream's sound may start late
					checkVideo(t, path, spec, true)
				}
				if got := len(frames(t, path, box)); math.Abs(float64(got-c.frames)) > 1 {
					t.Errorf("%d frames, want %d", got, c.frames)
				}
			})
		}
	}
}
