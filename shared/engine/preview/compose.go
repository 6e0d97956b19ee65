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

// Painting takes most of the time, so larger frames are painted at this size and scaled up. Scenes
// are soft enough for that.
const paintedPixels = 640 * 360

func (e *edit) compose(ctx context.Context) error {
	size := paintedSize(e.size)
	e.frames = &ffmpeg.Frames{
		Reader: &painter{ctx: ctx, scene: scene.Choose(e.spec.Prompt, e.spec.Seed), size: size, fps: e.fps, left: e.length()},
		Size:   size, FPS: e.fps,
	}
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

type painter struct {
	ctx           context.Context
	scene         scene.Scene
	size          catalog.Size
	fps           int
	painted, left int
	frame, rest   []byte
}

func (p *painter) Read(to []byte) (int, error) {
	if len(p.rest) == 0 {
		if err := p.next(); err != nil {
			return 0, err
		}
	}
	n := copy(to, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *painter) next() error {
	if p.left == 0 {
		return io.EOF
	}
	if p.frame == nil {
		p.frame = make([]byte, 3*p.size.Width*p.size.Height)
	}
	if err := p.scene.Paint(p.ctx, p.frame, p.size.Width, p.size.Height, float64(p.painted)/float64(p.fps)); err != nil {
		return err
	}
	p.painted, p.left, p.rest = p.painted+1, p.left-1, p.frame
	return nil
}
