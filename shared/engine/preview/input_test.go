package preview_test

import (
	"math"
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
