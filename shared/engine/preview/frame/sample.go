package frame

import (
	"bytes"
	_ "embed"
	"fmt"
	"image/jpeg"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/look"
)

// sampleFrame shows what a look does. It is a part of NASA's portrait of Eileen
// Collins, which is in the public domain.
//
//go:embed sample.jpg
var sampleFrame []byte

// SampleSize is the size of samples.
var SampleSize = catalog.Size{Width: 192, Height: 108}

// Sample returns a small JPEG that shows what a prompt makes of a photograph, or the
// photograph for one that asks for nothing.
func Sample(prompt string) ([]byte, error) {
	picture, err := jpeg.Decode(bytes.NewReader(sampleFrame))
	if err != nil {
		return nil, fmt.Errorf("frame: the sample: %w", err)
	}
	w := newWorkspace()
	w.load(picture, SampleSize)
	compile(look.Parse(prompt, 1), SampleSize).run(w, 0)
	return w.encode()
}
