package preview

import (
	"context"
	"io"
	"math"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/engine/preview/scene"
)

// Painting takes most of the time, so larger frames are painted at this size and scaled up. Scenes are soft enough
// not to show it.
const paintedPixels = 640 * 360

func (e *edit) compose(ctx context.Context) error {
	size := paintedSize(e.size)
	chosen, frame, painted := scene.Choose(e.spec.Prompt, e.spec.Seed), make([]byte, 3*size.Width*size.Height), 0
	paint := func() ([]byte, error) {
		if painted == e.length() {
			return nil, io.EOF
		}
		painted++
		return frame, chosen.Paint(ctx, frame, size.Width, size.Height, float64(painted-1)/float64(e.fps))
	}
	e.frames = &ffmpeg.Frames{Reader: &frameReader{next: paint}, Size: size, FPS: e.fps}
	link := e.filter(e.full(), "[0:v:0]")
	link, err := e.draw(ctx, link, look.Scenery(e.spec.Prompt, e.spec.Seed))
	if err != nil {
		return err
	}
	return e.encode(ctx, link)
}

func paintedSize(size catalog.Size) catalog.Size {
	if share := float64(paintedPixels) / float64(size.Width*size.Height); share < 1 {
		size = catalog.Size{
			Width: int(float64(size.Width) * math.Sqrt(share)), Height: int(float64(size.Height) * math.Sqrt(share)),
		}
	}
	return size
}

// frameReader reads frames one after another. next returns io.EOF after the last frame.
type frameReader struct {
	next func() ([]byte, error)
	rest []byte
}

func (r *frameReader) Read(to []byte) (int, error) {
	if len(r.rest) == 0 {
		frame, err := r.next()
		if err != nil {
			return 0, err
		}
		r.rest = frame
	}
	n := copy(to, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
