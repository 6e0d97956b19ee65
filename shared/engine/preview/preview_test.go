package preview_test

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/enginetest"
	"cutroom/shared/engine/preview"
	"cutroom/shared/engine/preview/person"
	"cutroom/shared/testkit/pixeltest"
)

var (
	reference  = filepath.Join("..", "..", "..", "testdata", "reference.jpg")
	personClip = filepath.Join("..", "..", "..", "testdata", "person.mp4")
)

func TestEveryKindIsEdited(t *testing.T) {
	for _, c := range []struct {
		kind      catalog.Kind
		prompt    string
		reference string
		size      catalog.Size
		fps       int
	}{
		{catalog.Restyle, "watercolor", "", catalog.Size{Width: 320, Height: 176}, 25},
		{catalog.Restyle, "", reference, catalog.Size{Width: 320, Height: 176}, 25},
		{catalog.Edit, "film noir", "", catalog.Size{Width: 320, Height: 180}, 20},
		{catalog.Edit, "winter", reference, catalog.Size{Width: 272, Height: 156}, 20},
		{catalog.Clip, "anime", "", catalog.Size{Width: 320, Height: 176}, 25},
		{catalog.TextToVideo, "a sailing boat at sunset", "", catalog.Size{Width: 320, Height: 176}, 25},
		{catalog.TextToVideo, "cyberpunk city", "", catalog.Size{Width: 176, Height: 320}, 25},
	} {
		t.Run(string(c.kind)+" "+c.prompt, func(t *testing.T) {
			spec := engine.Spec{
				Kind: c.kind, Prompt: c.prompt, Seed: 3, Size: c.size, FPS: c.fps, Duration: 400 * time.Millisecond,
			}
			if c.kind != catalog.TextToVideo {
				spec.Data = input(t, sample, false)
			}
			if c.reference != "" {
				spec.Reference = input(t, c.reference, true)
			}
			path := run(t, spec)
			checkVideo(t, path, spec, c.kind != catalog.TextToVideo)
			result := frames(t, path, c.size)
			if c.kind == catalog.TextToVideo {
				if m := result[0].Measure(); m.Contrast < 15 || m.Tones < 20 {
					t.Errorf("the picture shows little: %+v", m)
				}
				if d := pixeltest.Difference(result[:1], result[len(result)-1:]); d < 0.5 {
					t.Errorf("the picture moves by %.2f only", d)
				}
				return
			}
			if d := pixeltest.Difference(untouched(t, spec), result); d < 8 {
				t.Errorf("differs from the input by %.1f, want at least 8", d)
			}
		})
	}
}

// checkVideo checks that a browser can play a result immediately. The result must be H.264 High in 8-bit 4:2:0, with
// the index at the front, the exact size, frame rate and length, and audio in sync.
func checkVideo(t *testing.T, path string, spec engine.Spec, sound bool) {
	t.Helper()
	f := mediatest.Inspect(t, path)
	if want := map[bool]int{true: 2, false: 1}[sound]; len(f.Streams) != want {
		t.Fatalf("%d streams, want %d", len(f.Streams), want)
	}
	v, count := f.Streams[0], max(1, int(math.Round(spec.Duration.Seconds()*float64(spec.FPS))))
	if v.CodecName != "h264" || v.Profile != "High" || v.PixFmt != "yuv420p" {
		t.Errorf("the picture is %s %s %s", v.CodecName, v.Profile, v.PixFmt)
	}
	if v.Width != spec.Size.Width || v.Height != spec.Size.Height || v.RFrameRate != strconv.Itoa(spec.FPS)+"/1" ||
		v.NbFrames != strconv.Itoa(count) {
		t.Errorf("%dx%d at %s, %s frames; want %s at %d, %d", v.Width, v.Height, v.RFrameRate, v.NbFrames, spec.Size, spec.FPS, count)
	}
	if v.SampleAspectRatio != "1:1" || v.ColorSpace != "bt709" || v.ColorPrimaries != "bt709" ||
		v.ColorTransfer != "bt709" || v.ColorRange != "tv" {
		t.Errorf("aspect %s, colours %s %s %s %s", v.SampleAspectRatio, v.ColorSpace, v.ColorPrimaries, v.ColorTransfer, v.ColorRange)
	}
	if sound {
		a := f.Streams[1]
		length, _ := strconv.ParseFloat(a.Duration, 64)
		if a.CodecName != "aac" || math.Abs(length-float64(count)/float64(spec.FPS)) > 1/float64(spec.FPS) {
			t.Errorf("the sound is %s of %gs, want aac of %gs", a.CodecName, length, float64(count)/float64(spec.FPS))
		}
	}
	content, err := os.ReadFile(path)
	pixeltest.Require(t, err)
	if bytes.Index(content, []byte("moov")) > bytes.Index(content, []byte("mdat")) {
		t.Error("the index follows the pictures")
	}
}

func TestReferencesGiveTheirColors(t *testing.T) {
	references := map[string]string{"aurora": reference, "red": mediatest.Image{Source: "color=c=0xcc2010"}.Make(t)}
	for name, holds := range map[string]func(m traits) bool{
		"aurora": func(m traits) bool { return m.Blue > m.Red+50 },
		"red":    func(m traits) bool { return m.Red > m.Green+80 && m.Red > m.Blue+80 },
	} {
		for _, prompt := range []string{"", "oil painting"} {
			spec := small(t, prompt)
			spec.Reference = input(t, references[name], true)
			result := frames(t, run(t, spec), spec.Size)[0]
			if m := result.Measure(); !holds(m) {
				t.Errorf("%s: red %.0f, green %.0f, blue %.0f", name, m.Red, m.Green, m.Blue)
			}
			if l := untouched(t, spec)[0].Likeness(result); l < 0.45 {
				t.Errorf("%s: little is left of the scene: %.2f", name, l)
			}
		}
	}
}

// The clip turns from blue to red. By default, colors are matched to the entire clip.
func TestSelfAnchorUsesFirstFrame(t *testing.T) {
	clip := mediatest.Video{Filter: "hue=h=180:enable='lt(t,0.5)'", Silent: true, Args: []string{"-g", "2"}}.Make(t)
	var specs []engine.Spec
	for _, anchor := range []any{true, false, nil} {
		spec := small(t, "")
		spec.Data, spec.Duration, spec.Reference = input(t, clip, false), time.Second, input(t, reference, true)
		if anchor != nil {
			spec.Options = map[string]any{"self_anchor": anchor}
		}
		specs = append(specs, spec)
	}
	results := edits(t, specs...)
	if d := pixeltest.Difference(results[0], results[2]); d != 0 {
		t.Errorf("without the option the clip differs by %.2f from an anchored one", d)
	}
	if d := pixeltest.Difference(results[0], results[1]); d < 1 {
		t.Errorf("anchoring changes the clip by %.2f only", d)
	}
}

func TestCameraMovesTowardTheFace(t *testing.T) {
	still := filepath.Join(t.TempDir(), "still.jpg")
	mediatest.Run(t, "-i", personClip, "-frames:v", "1", "-q:v", "2", still)
	spec := portrait(t, "she waves")
	spec.Kind, spec.Data, spec.Reference, spec.Duration = catalog.ImageToVideo, input(t, still, true), input(t, reference, true), 2*time.Second
	path, outcome, err := attempt(t, t.Context(), spec)
	if err != nil || len(outcome.Understood) != 2 || !strings.Contains(outcome.Notice, "only moves the camera") || !strings.Contains(outcome.Notice, "she waves") {
		t.Fatalf("%+v, %v", outcome, err)
	}
	checkVideo(t, path, spec, false)
	face := func(path, frame string) person.Face {
		square, filters := catalog.Size{Width: 512, Height: 512}, ",scale=512:-1,pad=512:512:-1:-1"
		pixels := decode(t, square, "-i", path, "-vf", "select=eq(n\\,"+frame+")"+filters, "-frames:v", "1")[0].Pixels
		found, err := person.Faces(pixels, square)
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: faces %v, %v", path, found, err)
		}
		return found[0]
	}
	before, after := face(still, "0"), face(path, "14")
	if after.Size < 1.1*before.Size || math.Hypot(after.X-before.X, after.Y-before.Y) > 0.05 {
		t.Errorf("the face moves from %+v to %+v", before, after)
	}
	last := decode(t, spec.Size, "-i", reference, "-vf", "scale=512:288:force_original_aspect_ratio=increase,crop=512:288")
	if d := pixeltest.Difference(last, frames(t, path, spec.Size)[19:]); d > 4 {
		t.Errorf("the last frame differs by %.1f from the last image", d)
	}
}

func TestEngineConforms(t *testing.T) {
	found, err := tools()
	pixeltest.Require(t, err)
	small := catalog.Size{Width: 160, Height: 96}
	enginetest.Run(t, enginetest.Harness{Engine: preview.New(found), Video: small, Image: small, FPS: 10, Previews: true})
}

// Areas of the clip of a person, at 512x288 pixels.
var (
	head = image.Rect(180, 25, 270, 115)
	wall = image.Rect(380, 4, 500, 100)
)

func portrait(t testing.TB, prompt string) engine.Spec {
	return engine.Spec{
		Kind: catalog.Edit, Prompt: prompt, Seed: 7, Data: input(t, personClip, false),
		Size: catalog.Size{Width: 512, Height: 288}, FPS: 10, Duration: 300 * time.Millisecond,
	}
}

// The head does not change unless it is the subject. The wall behind it changes as the prompt says.
func TestBackgroundAndPersonAreEditedSeparately(t *testing.T) {
	for _, c := range []struct {
		prompt    string
		reference string
		subject   image.Rectangle // the area that changes
		holds     func(before, after traits) bool
	}{
		{"背景虚化", "", wall, func(b, a traits) bool { return a.Grain < 0.5*b.Grain }},
		{"black and white background, person in color", "", wall, func(_, a traits) bool { return a.Color < 6 }},
		{"make everything sepia except the person", "", wall, func(b, a traits) bool { return a.Warmth > b.Warmth+15 }},
		{"green screen", "", wall, func(_, a traits) bool { return a.Green > 150 && a.Red < 20 && a.Contrast < 5 }},
		{"fondo azul", "", wall, func(_, a traits) bool { return a.Blue > 240 && a.Red < 12 && a.Contrast < 5 }},
		{"use this image as the background", reference, wall, func(b, a traits) bool { return a.Light < b.Light-30 }},
		{"blur the background, backward", "", wall, func(b, a traits) bool { return a.Grain < 0.5*b.Grain }},
		{"black and white only on the person", "", head, func(_, a traits) bool { return a.Color < 8 }},
	} {
		t.Run(c.prompt, func(t *testing.T) {
			spec := portrait(t, c.prompt)
			if c.reference != "" {
				spec.Reference = input(t, c.reference, true)
			}
			path, outcome, err := attempt(t, t.Context(), spec)
			if err != nil || len(outcome.Understood) == 0 || outcome.Notice != "" {
				t.Fatalf("%+v, %v", outcome, err)
			}
			after, before := frames(t, path, spec.Size), untouched(t, spec)
			if len(after) != 3 {
				t.Fatalf("%d frames, want 3", len(after))
			}
			kept := map[image.Rectangle]image.Rectangle{wall: head, head: wall}[c.subject]
			if b, a := before[1].Part(c.subject).Measure(), after[1].Part(c.subject).Measure(); !c.holds(b, a) {
				t.Errorf("from %+v to %+v", b, a)
			}
			if d := before[1].Part(kept).Apart(after[1].Part(kept), 1); d > 4 {
				t.Errorf("the rest changes by %.1f", d)
			}
		})
	}
}

// The result is a PNG whose background is transparent.
func TestImageBackgroundsAreRemoved(t *testing.T) {
	still := filepath.Join(t.TempDir(), "still.png")
	mediatest.Run(t, "-i", personClip, "-frames:v", "1", still)
	spec := portrait(t, "remove the background")
	spec.Kind, spec.Data = catalog.Image, input(t, still, true)
	file, err := os.Open(run(t, spec))
	pixeltest.Require(t, err)
	defer file.Close()
	result, err := png.Decode(file)
	pixeltest.Require(t, err)
	for area, want := range map[image.Rectangle]uint32{head.Inset(8): 0xffff, wall: 0} {
		for y := area.Min.Y; y < area.Max.Y; y += 5 {
			for x := area.Min.X; x < area.Max.X; x += 5 {
				if _, _, _, alpha := result.At(x, y).RGBA(); alpha != want {
					t.Fatalf("alpha at %d, %d is %#x, want %#x", x, y, alpha, want)
				}
			}
		}
	}
}

// Eyes and mouth survive looks that paint over small details.
func TestFacesSurvivePainting(t *testing.T) {
	eyes := image.Rect(185, 70, 265, 135)
	for _, prompt := range []string{"watercolor", "oil painting", "impressionist", "underwater"} {
		spec := portrait(t, prompt)
		spec.Duration = 100 * time.Millisecond
		kept := untouched(t, spec)[0].Part(eyes).Details(frames(t, run(t, spec), spec.Size)[0].Part(eyes))
		t.Logf("%s: the details of the face correlate by %.2f", prompt, kept)
		if kept < 0.6 {
			t.Errorf("%s: the details of the face correlate by %.2f, want at least 0.6", prompt, kept)
		}
	}
}

// Each limit is twice the measured average change between consecutive masks.
func TestMasksDoNotFlicker(t *testing.T) {
	size := catalog.Size{Width: 256, Height: 144}
	for _, c := range []struct {
		name, filters string
		most          float64
	}{
		{"a noisy still", "trim=end_frame=1,loop=11:1,noise=alls=12:allf=t:all_seed=1,scale=256:144:flags=area", 0.008},
		{"a pan", "trim=end_frame=12,scale=256:144:flags=area", 0.02},
	} {
		finder, err := person.NewFinder(size)
		pixeltest.Require(t, err)
		shown := decode(t, size, "-i", personClip, "-vf", c.filters, "-frames:v", "12")
		sum, last := 0.0, []uint8(nil)
		for _, p := range shown {
			mask := make([]uint8, size.Width*size.Height)
			finder.Mask(p.Pixels, mask)
			for i, v := range last {
				sum += math.Abs(float64(v)-float64(mask[i])) / 255 / float64(len(mask)*(len(shown)-1))
			}
			last = mask
		}
		t.Logf("%s: the mask changes by %.4f from frame to frame", c.name, sum)
		if sum > c.most {
			t.Errorf("%s: the mask changes by %.4f from frame to frame, want at most %.4f", c.name, sum, c.most)
		}
	}
}

func TestThumbnailsComeWithResult(t *testing.T) {
	t.Parallel()
	clip := small(t, "a watercolor painting")
	clip.Size = catalog.Size{Width: 640, Height: 360}
	thumbnail := catalog.Size{Width: 320, Height: 180}
	image := clip
	image.Kind = catalog.Image
	words := clip
	words.Kind, words.Data = catalog.TextToVideo, nil
	for _, spec := range []engine.Spec{clip, image, words} {
		var results [2][]byte
		for i, wanted := range []bool{false, true} {
			spec.Thumbnails = wanted
			path, outcome, err := attempt(t, t.Context(), spec)
			pixeltest.Require(t, err)
			results[i], err = os.ReadFile(path)
			pixeltest.Require(t, err)
			if made := outcome.Thumbnails != nil; made != wanted {
				t.Fatalf("%s: thumbnails are made: %v, wanted: %v", spec.Kind, made, wanted)
			}
			var pictures engine.Thumbnails
			if wanted {
				pictures = outcome.Thumbnails()
			}
			for _, one := range []struct {
				name    string
				picture []byte
				wanted  bool
				size    catalog.Size
				most    int
			}{
				{"result", pictures.Result, wanted, thumbnail, 20_000},
				{"input", pictures.Input, wanted && spec.Data != nil, thumbnail, 20_000},
				{"poster", pictures.Poster, wanted && spec.Kind != catalog.Image, clip.Size, engine.MaxPoster},
			} {
				header, err := jpeg.DecodeConfig(bytes.NewReader(one.picture))
				size := catalog.Size{Width: header.Width, Height: header.Height}
				fits := err == nil && size == one.size && len(one.picture) <= one.most
				if given := one.picture != nil; given != one.wanted || given && !fits {
					t.Errorf("%s: the thumbnail of the %s is %s with %d bytes, wanted: %v, %v", spec.Kind, one.name, size,
						len(one.picture), one.wanted, err)
				}
			}
		}
		if !bytes.Equal(results[0], results[1]) {
			t.Errorf("%s: with thumbnails the result is another one", spec.Kind)
		}
	}
}

func TestThumbnailsHavePictureColors(t *testing.T) {
	t.Parallel()
	clear := mediatest.Image{
		Width: 321, Height: 161, Source: "color=c=red", PixelFormat: "rgba",
		Filter: "format=rgba,geq=r='r(X,Y)':g='g(X,Y)':b='b(X,Y)':a='255*lt(X,160)'",
	}
	clip := mediatest.Video{
		Width: 320, Height: 160, FPS: 10, Seconds: 0.2, Source: "color=c=red",
		Filter: "drawbox=x=160:y=0:w=160:h=160:c=blue:t=fill",
	}.Make(t)
	for _, test := range []struct {
		name string
		kind catalog.Kind
		data *engine.Input
		size catalog.Size
		// right is the color of the right half. The left half is red.
		right []float64
	}{
		{"a clip that is not edited", catalog.Edit, input(t, clip, false), catalog.Size{Width: 320, Height: 160}, []float64{0, 0, 255}},
		{"a clip that is larger than a poster", catalog.Edit, input(t, clip, false), catalog.Size{Width: 1440, Height: 722}, []float64{0, 0, 255}},
		{"a transparent picture", catalog.Image, input(t, clear.Make(t), true), catalog.Size{Width: 321, Height: 161}, []float64{255, 255, 255}},
	} {
		spec := small(t, "qwertz")
		spec.Kind, spec.Data, spec.Size, spec.Thumbnails = test.kind, test.data, test.size, true
		_, outcome, err := attempt(t, t.Context(), spec)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		made := outcome.Thumbnails()
		pictures := map[string][]byte{"result": made.Result, "input": made.Input}
		if test.kind != catalog.Image {
			pictures["poster"] = made.Poster
		}
		for name, encoded := range pictures {
			decoded, err := jpeg.Decode(bytes.NewReader(encoded))
			if err != nil {
				t.Errorf("%s: its %s: %v", test.name, name, err)
				continue
			}
			picture := pixeltest.Of(decoded)
			for at, want := range map[int][]float64{picture.Width / 4: {255, 0, 0}, picture.Width * 3 / 4: test.right} {
				if r, g, b := picture.At(at, picture.Height/2); !near([]float64{r, g, b}, want, 12) {
					t.Errorf("%s: its %s has %.0f %.0f %.0f at %d, not %v", test.name, name, r, g, b, at, want)
				}
			}
		}
	}
}
