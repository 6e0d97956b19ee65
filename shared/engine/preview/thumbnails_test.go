package preview_test

import (
	"bytes"
	"image/jpeg"
	"os"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
)

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
			path, outcome, err := attempt(t, t.Context(), spec, func(engine.Progress) {})
			require(t, err)
			results[i], err = os.ReadFile(path)
			require(t, err)
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
				if !one.wanted {
					if one.picture != nil {
						t.Errorf("%s: the %s has a thumbnail that was not requested", spec.Kind, one.name)
					}
					continue
				}
				header, err := jpeg.DecodeConfig(bytes.NewReader(one.picture))
				size := catalog.Size{Width: header.Width, Height: header.Height}
				if err != nil || size != one.size || len(one.picture) > one.most {
					t.Errorf("%s: the %s's is of %dx%d pixels and %d bytes, %v",
						spec.Kind, one.name, header.Width, header.Height, len(one.picture), err)
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
		right [3]uint32
	}{
		{"a clip that is not edited", catalog.Edit, input(t, clip, false), catalog.Size{Width: 320, Height: 160}, [3]uint32{0, 0, 255}},
		{"a clip that is larger than a poster", catalog.Edit, input(t, clip, false), catalog.Size{Width: 1440, Height: 722}, [3]uint32{0, 0, 255}},
		{"a transparent picture", catalog.Image, input(t, clear.Make(t), true), catalog.Size{Width: 321, Height: 161}, [3]uint32{255, 255, 255}},
	} {
		spec := small(t, "qwertz")
		spec.Kind, spec.Data, spec.Size, spec.Thumbnails = test.kind, test.data, test.size, true
		_, outcome, err := attempt(t, t.Context(), spec, func(engine.Progress) {})
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		made := outcome.Thumbnails()
		pictures := map[string][]byte{"result": made.Result, "input": made.Input}
		if test.kind != catalog.Image {
			pictures["poster"] = made.Poster
		}
		for name, encoded := range pictures {
			picture, err := jpeg.Decode(bytes.NewReader(encoded))
			if err != nil {
				t.Errorf("%s: its %s: %v", test.name, name, err)
				continue
			}
			bounds := picture.Bounds()
			for at, want := range map[int][3]uint32{bounds.Dx() / 4: {255, 0, 0}, bounds.Dx() * 3 / 4: test.right} {
				r, g, b, _ := picture.At(at, bounds.Dy()/2).RGBA()
				for i, value := range []uint32{r >> 8, g >> 8, b >> 8} {
					if max(value, want[i])-min(value, want[i]) > 12 {
						t.Errorf("%s: its %s has %d %d %d at %d, not %v", test.name, name, r>>8, g>>8, b>>8, at, want)
						break
					}
				}
			}
		}
	}
}
