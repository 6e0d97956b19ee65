package realtime

import (
	"image"
	"image/color"
	"os"
	"testing"

	"cutroom/shared/domain/media/mediatest"
)

func TestFramesAreUpright(t *testing.T) {
	const quarters = "geq=r='255*(lt(X,W/2)*lt(Y,H/2)+gte(X,W/2)*gte(Y,H/2))':g='255*gte(X,W/2)':b='255*gte(Y,H/2)'"
	shown := map[int]string{1: "rgbw", 2: "grwb", 3: "wbgr", 4: "bwrg", 5: "rbgw", 6: "brwg", 7: "wgbr", 8: "gwrb"}
	frames := map[string]int{mediatest.File(t, "cmyk.jpg"): 1}
	for orientation := range shown {
		frames[mediatest.Image{
			Name: "a.jpg", Width: 97, Height: 64, Filter: quarters, PixelFormat: "yuvj422p", Orientation: orientation,
		}.Make(t)] = orientation
	}
	for path, orientation := range frames {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		picture, err := decodeFrame(content)
		if err != nil {
			t.Fatal(err)
		}
		size, seen := picture.Bounds().Size(), ""
		for _, at := range []image.Point{{1, 1}, {3, 1}, {1, 3}, {3, 3}} {
			c := color.NRGBAModel.Convert(picture.At(at.X*size.X/4, at.Y*size.Y/4)).(color.NRGBA)
			seen += map[[3]bool]string{
				{true, false, false}: "r", {false, true, false}: "g", {false, false, true}: "b", {true, true, true}: "w",
			}[[3]bool{c.R > 128, c.G > 128, c.B > 128}]
		}
		if seen != shown[orientation] || (size.X < size.Y) != (orientation >= 5) {
			t.Errorf("orientation %d: a frame of %v shows %s, want %s", orientation, size, seen, shown[orientation])
		}
	}
}
