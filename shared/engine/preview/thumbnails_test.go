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

// TestThumbnails: they come with the result where they are wanted, and leave it as it is.
func TestThumbnails(t *testing.T) {
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
			path, told, err := attempt(t, t.Context(), spec, func(engine.Progress) {})
			if err != nil {
				t.Fatal(err)
			}
			if results[i], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
			for _, one := range []struct {
				name    string
				picture []byte
				wanted  bool
				size    catalog.Size
				most    int
			}{
				{"result", told.Thumbnails.Result, wanted, thumbnail, 20_000},
				{"input", told.Thumbnails.Input, wanted && spec.Data != nil, thumbnail, 20_000},
				{"poster", told.Thumbnails.Poster, wanted && spec.Kind != catalog.Image, clip.Size, engine.MaxPoster},
			} {
				if !one.wanted {
					if one.picture != nil {
						t.Errorf("%s: the %s has a picture that was not wanted", spec.Kind, one.name)
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

// TestThumbnailsOfWhatBeginsBlank: the engine leaves them to whoever looks at more of the clip.
func TestThumbnailsOfWhatBeginsBlank(t *testing.T) {
	t.Parallel()
	spec := small(t, "a watercolor painting")
	spec.Data = input(t, mediatest.Video{Seconds: 1, Filter: "fade=d=0.5"}.Make(t), false)
	spec.Thumbnails = true
	_, told, err := attempt(t, t.Context(), spec, func(engine.Progress) {})
	pictures := told.Thumbnails
	if err != nil || pictures.Input != nil || pictures.Result != nil || pictures.Poster != nil {
		t.Errorf("pictures of %d, %d and %d bytes, %v", len(pictures.Input), len(pictures.Result), len(pictures.Poster), err)
	}
}
