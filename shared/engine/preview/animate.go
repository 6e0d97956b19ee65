package preview

import (
	"context"
	"fmt"
	"io"
	"math"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/engine/preview/scene"
)

// animate makes a video from a picture. The camera moves slowly closer to the largest face, or to one side if there is
// no face. If there is a reference image, the video ends with it.
func (e *edit) animate(ctx context.Context) error {
	if err := e.aim(ctx); err != nil {
		return err
	}
	if e.clip.Right == 0 && e.clip.Down == 0 {
		e.clip.Right = float64(e.spec.Seed%2) - 0.5
	}
	still := func(input engine.Input) string {
		cover := fmt.Sprintf("trim=end_frame=1,scale=%d:%d:force_original_aspect_ratio=increase,crop=%[1]d:%[2]d,"+
			"loop=loop=-1:size=1,settb=1/%d,setpts=N", e.size.Width, e.size.Height, e.fps)
		source := ffmpeg.Source{Path: input.Path, MIME: input.MIME, Info: input.Info}
		return e.colors(e.upright(e.filter(cover, e.input(source)), input))
	}
	// The visible part shrinks from 94 % to 80 % of the picture. It stays nearer to the side where the subject is.
	moved := fmt.Sprintf("(0.5-0.5*cos(PI*on/%d))", max(1, e.length()-1))
	edges := func(side string, toward float64) (near, far string) {
		hidden := "(0.06+0.14*" + moved + ")"
		near = fmt.Sprintf("%s*%s*clip(0.5+%.4f*%s,0,1)", side, hidden, toward*float64(max(e.size.Width, e.size.Height)), moved+"/"+side)
		return near, fmt.Sprintf("%s+%s*(1-%s)", near, side, hidden)
	}
	left, right := edges("W", e.clip.Right)
	top, bottom := edges("H", e.clip.Down)
	link := e.capture(still(*e.spec.Data), inputThumbnail)
	link = e.filter(look.Camera(left, right, top, bottom), link)
	if last := e.spec.Reference; last != nil {
		seconds := e.spec.Duration.Seconds()
		link = e.filter(fmt.Sprintf("xfade=duration=%.3f:offset=%.3f,trim=end_frame=%d", seconds/5, seconds*3/4, e.length()),
			link, still(*last))
	}
	return e.encode(ctx, link)
}

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
		if err := e.drawing.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer e.drawing.Release(1)
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
