package preview_test

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/draw"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/engine"
	"cutroom/shared/testkit/pixeltest"
	"cutroom/shared/testkit/thorough"
)

type still struct {
	name string
	make func(t testing.TB) string
	// want holds ffmpeg's arguments for the correct picture. If it is nil, ffmpeg itself shows the file correctly.
	want []string
}

func stills() (all []still) {
	source := mediatest.Drawn("testsrc2", "96x64", "1")
	for _, c := range []struct {
		name, format string
		args         string
		orientation  int
	}{
		{"a.jpg", "", "", 6}, {"a.jpg", "", "", 8}, {"a.png", "", "", 3}, {"a.webp", "", "", 4}, {"a.tif", "", "", 5},
		{"a.avif", "", "", 6}, {"a.avif", "", "", 2}, {"a.heic", "", "", 6}, {"a.heic", "", "", 7}, {"a.heic", "", "", 1},
		{"a.jpg", "yuvj422p", "", 0}, {"a.png", "gray16be", "", 0}, {"a.png", "pal8", "", 0},
		{"a.png", "monob", "", 0}, {"a.png", "rgb48be", "", 0}, {"a.bmp", "bgr24", "", 0}, {"a.bmp", "pal8", "", 0},
		{"a.bmp", "rgb555le", "", 0}, {"a.tif", "rgb48le", "-compression_algo deflate", 0},
		{"a.tif", "gray", "-compression_algo lzw", 0}, {"a.webp", "bgra", "-lossless 1", 0}, {"a.gif", "", "", 0},
		{"a.avif", "yuv420p10le", "", 0}, {"a.avif", "yuv444p", "", 0}, {"a.avif", "yuv444p12le", "", 0},
	} {
		i := mediatest.Image{Name: c.name, Width: 96, Height: 64, PixelFormat: c.format, Args: strings.Fields(c.args),
			Orientation: c.orientation}
		made := still{make: func(t testing.TB) string { return i.Make(t) }}
		made.name = fmt.Sprint(c.name, c.format, c.orientation)
		if c.orientation > 0 {
			made.want = slices.Concat(source, []string{"-vf", mediatest.Orientations[c.orientation-1]})
		}
		all = append(all, made)
	}
	// The pictures have red, green, blue and white quarters.
	fixed := func(name string, want []string) still {
		return still{name, func(t testing.TB) string { return mediatest.File(t, name) }, want}
	}
	square := func(size string, colours ...string) []string {
		return []string{"-f", "lavfi", "-i", "color=s=" + size + ":d=1:r=25,format=rgb24", "-vf",
			strings.NewReplacer(colours...).Replace(corners)}
	}
	return append(all,
		fixed("grid.avif", square("640x360")), fixed("cmyk.jpg", square("320x180")),
		fixed("display-p3.jpg",
			square("320x180", "red", "0xe72828", "lime", "0x2ad62c", "blue", "0x282ae5", "white", "0xe5d527")),
		still{"animated.webp", func(t testing.TB) string {
			return mediatest.AnimatedWebP(t, 96, 64, 0, 0, mediatest.Image{Name: "a.webp", Width: 96, Height: 64}.Make(t),
				mediatest.Image{Name: "a.webp", Width: 96, Height: 64, Source: "color=c=red"}.Make(t))
		}, source},
		still{"animated.png", func(t testing.TB) string {
			return mediatest.Write(t, slices.Concat(mediatest.Drawn("testsrc2,fade=out:2:9", "96x64", "1"), strings.Fields("-f apng a.png"))...)
		}, source},
		still{"animated.gif", func(t testing.TB) string {
			return mediatest.Video{Name: "a.gif", Width: 96, Height: 64, FPS: 25, Filter: "hue=h=180*t"}.Make(t)
		}, source},
		still{"gray.jpg", func(t testing.TB) string {
			half := image.NewGray(image.Rect(0, 0, 96, 64))
			draw.Draw(half, image.Rect(48, 0, 96, 64), image.White, image.Point{}, draw.Src)
			var content bytes.Buffer
			pixeltest.Require(t, jpeg.Encode(&content, half, nil))
			return mediatest.Noise(t, content.Bytes(), 0)
		}, mediatest.Drawn("color=c=black,drawbox=c=white:t=fill:x=iw/2", "96x64", "1")},
		still{"progressive.jpg", func(t testing.TB) string {
			return mediatest.Noise(t, mediatest.ProgressiveJPEG, 0)
		}, nil})
}

func sniffed(t testing.TB, path string) (content []byte, kind media.Type) {
	t.Helper()
	content, err := os.ReadFile(path)
	pixeltest.Require(t, err)
	kind, _ = sniff.Media(content[:min(len(content), media.SniffLen)])
	return content, kind
}

// received reads a file as a worker does.
func received(t *testing.T, path string, image bool) (engine.Input, error) {
	t.Helper()
	found, err := tools()
	pixeltest.Require(t, err)
	_, kind := sniffed(t, path)
	if image && !kind.Image || !image && !kind.Video {
		return engine.Input{}, engine.InvalidInput(nil, "The file is not media.")
	}
	if image {
		return found.ReadImage(t.Context(), t.TempDir(), path, kind.MIME)
	}
	return found.ReadVideo(t.Context(), t.TempDir(), path, kind.MIME)
}

// TestVideosPassThroughUnchanged runs videos of all kinds through the engine without changes, and compares
// pictures and sound with the originals.
func TestVideosPassThroughUnchanged(t *testing.T) {
	encodings := mediatest.Encodings(t)
	for i, c := range slices.Concat(encodings, mediatest.Turned(), mediatest.Unusual()) {
		if i < len(encodings) && i%2 > 0 && !thorough.Wanted() {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			path := c.Make(t)
			data, err := received(t, path, false)
			pixeltest.Require(t, err)
			size, check := box, checkCorrected
			if c.First == nil {
				size, check = catalog.Size{Width: 128, Height: 96}, checkPlayed
			}
			spec := engine.Spec{
				Kind: catalog.Edit, Prompt: "don't change anything", Data: &data, FPS: 25, Duration: data.Info.Duration,
				Size: size.Fit(catalog.Size{Width: data.Info.Width, Height: data.Info.Height}),
			}
			first := check(t, spec, c, run(t, spec))[0]
			if c.First != nil {
				data.Info = media.Info{} // an upload's info is unknown
			}
			if c.First != nil || i%4 == 0 { // posters use the same decoders
				checkPoster(t, data, first)
			}
		})
	}
}

// checkPlayed compares a result with the input as ffmpeg decodes it.
func checkPlayed(t *testing.T, spec engine.Spec, _ mediatest.Clip, result string) []picture {
	t.Helper()
	both, sound := playedOf(t, spec.Size, spec.Data.Info.Audio, spec.Data.Path, result)
	want, got := both[0], both[1]
	if more := len(got) - len(want); more < 0 || more > 1 {
		t.Errorf("%d pictures, want %d", len(got), len(want))
	}
	for _, at := range []int{0, len(want) / 2, len(want) - 1} {
		// A picture's time may be halfway between two pictures of the result.
		next := min(at+1, len(got)-1)
		if d := min(want[at].Apart(got[next-1], 8), want[at].Apart(got[next], 8)); d > 6 {
			t.Errorf("picture %d differs by %.1f", at, d)
		}
	}
	if spec.Data.Info.Audio != (spec.Data.MIME != "image/gif") {
		t.Errorf("sound is %v", spec.Data.Info.Audio)
	} else if spec.Data.Info.Audio {
		// The tone made by mediatest is 440 Hz, but the click in its middle adds zero crossings.
		if heard := mediatest.Tones(mediatest.Samples(sound), 1); !near(heard, []float64{471}, 20) {
			t.Errorf("the sound has the tone %.0f, want 471", heard)
		}
	}
	return got
}

// checkCorrected compares a result with the pictures and tones that a clip should show and play.
func checkCorrected(t *testing.T, spec engine.Spec, c mediatest.Clip, result string) []picture {
	t.Helper()
	checkVideo(t, result, spec, c.Tones != nil)
	decoded, sound := playedOf(t, spec.Size, len(c.Tones) > 0, result)
	got := decoded[0]
	for at, args := range map[int][]string{1: c.First, len(got) - 2: c.Last} {
		if args == nil {
			continue
		}
		want := decodeOnce(t, spec.Size, slices.Concat(args, []string{"-frames:v", "1", "-s", spec.Size.String()})...)
		if d := pixeltest.Difference(want, got[at:]); d > 8 {
			t.Errorf("picture %d differs by %.1f", at, d)
		}
	}
	if len(c.Tones) > 0 {
		if heard := mediatest.Tones(mediatest.Samples(sound), len(c.Tones)); !near(heard, c.Tones, 20) {
			t.Errorf("the sound has the tones %.0f, want %.0f", heard, c.Tones)
		}
	}
	return got
}

// TestImagesPassThroughUnchanged runs images in all formats through the engine without changes, and compares
// the result, the poster and a session's reference image with the originals.
func TestImagesPassThroughUnchanged(t *testing.T) {
	for _, c := range stills() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := c.make(t)
			data, err := received(t, path, true)
			pixeltest.Require(t, err)
			size := catalog.Size{Width: data.Info.Width, Height: data.Info.Height}
			spec := engine.Spec{Kind: catalog.Image, Prompt: "don't change anything", Data: &data, Size: size}
			result := run(t, spec)
			args := c.want
			if args == nil {
				args = []string{"-i", path}
			}
			want := mediatest.Write(t, slices.Concat(args, []string{"-frames:v", "1", "want.png"})...)
			content, kind := sniffed(t, path)
			found, _ := tools()
			pixels, shown, err := found.Still(t.Context(), content, kind.MIME, 640)
			if err != nil || shown != size {
				t.Fatalf("the reference image has %s pixels, want %s: %v", shown, size, err)
			}
			reference := filepath.Join(t.TempDir(), "reference.pam")
			head := fmt.Appendf(nil, "P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n",
				size.Width, size.Height)
			pixeltest.Require(t, os.WriteFile(reference, append(head, pixels...), 0o600))
			decoded, _ := playedOf(t, size, false, want, result, reference)
			checkPoster(t, engine.Input{Path: path, MIME: kind.MIME}, decoded[1][0])
			if d := decoded[0][0].Apart(decoded[1][0], 8); d > 6 {
				t.Errorf("the result differs by %.1f", d)
			}
			if d := decoded[0][0].Apart(decoded[2][0], 8); d > 6 {
				t.Errorf("the reference image differs by %.1f", d)
			}
			info, err := media.Inspect(bytes.NewReader(content), int64(len(content)), kind.MIME)
			if err != nil || info.Width != size.Width || info.Height != size.Height {
				t.Errorf("the header says %dx%d, want %s: %v", info.Width, info.Height, size, err)
			}
		})
	}
}

func checkPoster(t *testing.T, of engine.Input, want picture) {
	t.Helper()
	found, _ := tools()
	posters, err := found.Posters(t.Context(), t.TempDir(), []engine.Depicted{{Input: of, Poster: true}})
	pixeltest.Require(t, err)
	poster, err := jpeg.Decode(bytes.NewReader(posters[0]))
	pixeltest.Require(t, err)
	shown := catalog.Size{Width: poster.Bounds().Dx(), Height: poster.Bounds().Dy()}
	size := catalog.Size{Width: want.Width, Height: want.Height}
	if size.Fit(shown) != size {
		t.Errorf("the poster has %s pixels, want the shape of %s", shown, size)
	}
	small := image.NewRGBA(image.Rect(0, 0, want.Width, want.Height))
	draw.NearestNeighbor.Scale(small, small.Rect, poster, poster.Bounds(), draw.Src, nil)
	if d := want.Apart(pixeltest.Of(small), 8); d > 6 {
		t.Errorf("the poster differs by %.1f", d)
	}
}
