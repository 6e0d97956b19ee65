package frame

import (
	"bytes"
	"fmt"
	"image/jpeg"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/look"
)

// A JPEG quality, out of 100.
const sampleQuality = 82

// Sample edits a JPEG as if it were a session's first frame, and returns it scaled to a size.
func Sample(photograph []byte, prompt string, size catalog.Size) ([]byte, error) {
	picture, err := jpeg.Decode(bytes.NewReader(photograph))
	if err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	w, small := newWorkspace(), newRaster(size)
	p := compile(look.Parse(prompt, 1), Box, false)
	w.begin(p, picture, fullRange)
	p.run(w, 0)
	s := w.scaler(Box, size)
	for i := range small.planes {
		s.scale(small.planes[i], w.picture.planes[i], Box.Width)
	}
	w.colors.sized(size)
	small.split(&w.colors.YCbCr, fullRange)
	var out bytes.Buffer
	if err := jpeg.Encode(&out, &w.colors.YCbCr, &jpeg.Options{Quality: sampleQuality}); err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	return out.Bytes(), nil
}
