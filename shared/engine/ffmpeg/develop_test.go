package ffmpeg_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"image/color"
	"image/jpeg"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
)

const quarters = "geq=r='255*(lt(X,W/2)*lt(Y,H/2)+gte(X,W/2)*gte(Y,H/2))':" +
	"g='255*gte(X,W/2)':b='255*gte(Y,H/2)'"

// orientations maps each Exif orientation to the colors of the displayed quarters, row by row.
var orientations = map[int]string{
	1: "rgbw", 2: "grwb", 3: "wbgr", 4: "bwrg", 5: "rbgw", 6: "brwg", 7: "wgbr", 8: "gwrb",
}

var images = map[string]string{
	"a.jpg": "image/jpeg", "a.png": "image/png", "a.webp": "image/webp", "a.tif": "image/tiff",
	"a.avif": "image/avif", "a.heic": "image/heic",
}

func seen(t *testing.T, path, mime string) (colours string, width, height int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pixels, size, err := find(t).Still(t.Context(), data, mime, 160)
	if err != nil {
		t.Fatal(err)
	}
	for _, y := range []int{size.Height / 4, size.Height * 3 / 4} {
		for _, x := range []int{size.Width / 4, size.Width * 3 / 4} {
			p := pixels[4*(y*size.Width+x):]
			colours += name(color.RGBA{p[0], p[1], p[2], p[3]})
		}
	}
	return colours, size.Width, size.Height
}

func name(c color.RGBA) string {
	for name, like := range map[string][3]int{"r": {255, 0, 0}, "g": {0, 255, 0}, "b": {0, 0, 255}, "w": {255, 255, 255}} {
		near := true
		for i, v := range []uint8{c.R, c.G, c.B} {
			near = near && max(like[i]-int(v), int(v)-like[i]) < 60
		}
		if near {
			return name
		}
	}
	return fmt.Sprintf("(%d,%d,%d)", c.R, c.G, c.B)
}

// All formats are inspected in every orientation. Only PNG and HEIC are decoded in every orientation. Tools rotate
// the other formats, except AVIF, in the same way as PNG.
func TestImagesAreUpright(t *testing.T) {
	for file, mime := range images {
		for orientation, want := range orientations {
			t.Run(fmt.Sprint(file[2:], orientation), func(t *testing.T) {
				t.Parallel()
				path := mediatest.Image{Name: file, Width: 96, Height: 64, Filter: quarters, Orientation: orientation}.Make(t)
				width, height := 96, 64
				if orientation >= 5 {
					width, height = height, width
				}
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				still, err := media.InspectStill(bytes.NewReader(content), int64(len(content)), mime)
				if heif := mime == "image/heic" || mime == "image/avif"; err != nil || !heif && still.Orientation != orientation {
					t.Errorf("InspectStill: orientation %d, %v", still.Orientation, err)
				}
				info, err := media.Inspect(bytes.NewReader(content), int64(len(content)), mime)
				if err != nil || info.Width != width || info.Height != height {
					t.Errorf("Inspect: %+v, %v; want %dx%d", info, err, width, height)
				}
				if file != "a.png" && file != "a.heic" && orientation != 7 {
					return
				}
				if got, w, h := seen(t, path, mime); got != want || w != width || h != height {
					t.Errorf("the picture is %s, %dx%d; want %s, %dx%d", got, w, h, want, width, height)
				}
				if orientation != 7 {
					return
				}
				input, err := find(t).ReadImage(t.Context(), t.TempDir(), path, mime)
				if err != nil || input.Info.Width != width || input.Info.Height != height || input.Info.Alpha {
					t.Fatalf("ReadImage: %+v, %v; want %dx%d", input.Info, err, width, height)
				}
				if got, _, _ := seen(t, input.Path, input.MIME); got != want {
					t.Errorf("ReadImage shows %s, want %s", got, want)
				}
			})
		}
	}
}

func kept(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "picture.png")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A Display P3 red becomes the sRGB red that looks the same, in every format that can have a profile.
func TestColorsAreConverted(t *testing.T) {
	p3 := mediatest.File(t, "display-p3.jpg")
	file, err := os.ReadFile(p3)
	if err != nil {
		t.Fatal(err)
	}
	still, err := media.InspectStill(bytes.NewReader(file), int64(len(file)), "image/jpeg")
	if err != nil || len(still.Profile) < 400 {
		t.Fatalf("a profile of %d bytes, %v", len(still.Profile), err)
	}
	var profile bytes.Buffer
	profile.WriteString("p3\x00\x00")
	compressor := zlib.NewWriter(&profile)
	_, _ = compressor.Write(still.Profile)
	compressor.Close()
	red := mediatest.Image{Width: 64, Height: 64, Source: "color=c=0xd43d34"}
	plain, err := os.ReadFile(red.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	png := kept(t, slices.Insert(plain, 33, mediatest.Chunk("iCCP", profile.Bytes())...))
	heic, avif := filepath.Join(t.TempDir(), "a.heic"), filepath.Join(t.TempDir(), "a.avif")
	mediatest.EncodeHEIF(t, png, heic)
	mediatest.EncodeHEIF(t, png, avif)
	for name, test := range map[string]struct{ path, mime string }{
		"JPEG": {p3, "image/jpeg"}, "PNG": {png, "image/png"}, "HEIC": {heic, "image/heic"}, "AVIF": {avif, "image/avif"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			posters, err := find(t).Posters(
				t.Context(), t.TempDir(), []engine.Depicted{{Input: engine.Input{Path: test.path, MIME: test.mime}}},
			)
			if err != nil {
				t.Fatal(err)
			}
			thumbnail, err := jpeg.Decode(bytes.NewReader(posters[0]))
			if err != nil {
				t.Fatal(err)
			}
			r, g, b, _ := thumbnail.At(16, 16).RGBA()
			if r>>8 < 222 || r>>8 > 238 || g>>8 > 48 || b>>8 > 48 {
				t.Errorf("the thumbnail has red %d, green %d, blue %d; want 230, 39, 39", r>>8, g>>8, b>>8)
			}
		})
	}
}

func TestMissingHEIFConverterIsNamed(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"ffmpeg", "ffprobe"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	path := mediatest.File(t, "grid.avif")
	t.Setenv("PATH", folder)
	tools := findAnew(t)
	_, err := tools.ReadImage(t.Context(), t.TempDir(), path, "image/avif")
	var refused *engine.Error
	if !errors.As(err, &refused) || refused.Code != job.InvalidInput || !strings.Contains(refused.Message, "HEIC") ||
		!strings.Contains(refused.Message, "libheif-examples") {
		t.Errorf("got %v", err)
	}
	if err := tools.CheckHEIC(t.Context()); err == nil || !strings.Contains(err.Error(), "libheif-examples") {
		t.Errorf("CheckHEIC: %v", err)
	}
}
