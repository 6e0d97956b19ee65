package realtime

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"os"
	"slices"
	"testing"

	"cutroom/shared/domain/media/mediatest"
)

// seen names the color of each quarter of a frame. Gray and black are "-".
func seen(t *testing.T, frame []byte) (colors string, size image.Point) {
	t.Helper()
	picture, err := decodeFrame(frame)
	if err != nil {
		t.Fatal(err)
	}
	size = picture.Bounds().Size()
	for _, at := range []image.Point{{1, 1}, {3, 1}, {1, 3}, {3, 3}} {
		c := color.NRGBAModel.Convert(picture.At(at.X*size.X/4, at.Y*size.Y/4)).(color.NRGBA)
		colors += map[[3]bool]string{
			{}: "-", {true, false, false}: "r", {false, true, false}: "g", {false, false, true}: "b", {true, true, true}: "w",
		}[[3]bool{c.R > 140, c.G > 140, c.B > 140}]
	}
	return colors, size
}

const quarters = "geq=r='255*(lt(X,W/2)*lt(Y,H/2)+gte(X,W/2)*gte(Y,H/2))':g='255*gte(X,W/2)':b='255*gte(Y,H/2)'"

func contentOf(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestFramesAreUpright(t *testing.T) {
	for orientation, want := range []string{1: "rgbw", 2: "grwb", 3: "wbgr", 4: "bwrg", 5: "rbgw", 6: "brwg", 7: "wgbr", 8: "gwrb"} {
		colors, size := seen(t, contentOf(t, mediatest.Image{
			Name: "a.jpg", Width: 97, Height: 64, Filter: quarters, PixelFormat: "yuvj422p", Orientation: orientation,
		}.Make(t)))
		if orientation > 0 && (colors != want || (size.X < size.Y) != (orientation >= 5)) {
			t.Errorf("orientation %d: a frame of %v shows %s, want %s", orientation, size, colors, want)
		}
	}
}

func TestFramesOfAllKindsAreShown(t *testing.T) {
	made := func(format string) []byte {
		return contentOf(t, mediatest.Image{Name: "a.jpg", Width: 96, Height: 64, Filter: quarters, PixelFormat: format}.Make(t))
	}
	half := image.NewGray(image.Rect(0, 0, 96, 64))
	draw.Draw(half, image.Rect(48, 0, 96, 64), image.White, image.Point{}, draw.Src)
	var gray bytes.Buffer
	if err := jpeg.Encode(&gray, half, nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		frame []byte
		want  string
	}{
		"4:2:0":           {made("yuvj420p"), "rgbw"},
		"4:4:4":           {made("yuvj444p"), "rgbw"},
		"4:1:1":           {handmade(nil, 0xc0, 8), "rrrr"},
		"gray":            {gray.Bytes(), "-w-w"},
		"Adobe, RGB":      {handmade(adobe(0), 0xc0, 8), "bbbb"},
		"Adobe, YCbCr":    {handmade(adobe(1), 0xc0, 8), "rrrr"},
		"JFIF and Adobe":  {handmade(append([]byte("\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"), adobe(1)...), 0xc0, 8), "rrrr"},
		"more quantizers": {handmade(nil, 0xc1, 8), "rrrr"},
	} {
		if colors, _ := seen(t, c.frame); colors != c.want {
			t.Errorf("%s: shows %s, want %s", name, colors, c.want)
		}
	}
	if _, size := seen(t, mediatest.ProgressiveJPEG); size != image.Pt(96, 64) {
		t.Errorf("a progressive frame has %v pixels", size)
	}
	for name, frame := range map[string][]byte{
		"12 bits": handmade(nil, 0xc1, 12), "arithmetic coding": handmade(nil, 0xc9, 8), "lossless": handmade(nil, 0xc3, 8),
		"PNG": contentOf(t, mediatest.Image{}.Make(t)), "CMYK": contentOf(t, mediatest.File(t, "cmyk.jpg")),
	} {
		if _, err := decodeFrame(frame); err == nil {
			t.Errorf("%s: accepted", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

func adobe(transform byte) []byte {
	return append([]byte("\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00"), transform)
}

// handmade is a red picture of 32x8 pixels with 4:1:1 subsampling: one unit of four luma blocks and
// two chroma blocks. Only the last block has a value.
func handmade(segments []byte, frame, bits byte) []byte {
	huffman := func(class byte, counts [2]byte, values ...byte) []byte {
		counted := slices.Concat([]byte{class}, counts[:], make([]byte, 14), values)
		return slices.Concat([]byte{0xff, 0xc4, 0, byte(2 + len(counted))}, counted)
	}
	return slices.Concat([]byte{0xff, 0xd8}, segments,
		[]byte{0xff, 0xdb, 0, 67, 0}, bytes.Repeat([]byte{1}, 64),
		[]byte{0xff, frame, 0, 17, bits, 0, 8, 0, 32, 3, 1, 0x41, 0, 2, 0x11, 0, 3, 0x11, 0},
		huffman(0x00, [2]byte{1, 1}, 0, 9), // code 0: no difference, code 10: a difference of nine bits
		huffman(0x10, [2]byte{1, 0}, 0),    // code 0: the end of a block
		[]byte{0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0},
		// Five blocks without values, then 10, nine ones and 0.
		[]byte{0, 0b00101111, 0xfb, 0xff, 0xd9})
}
