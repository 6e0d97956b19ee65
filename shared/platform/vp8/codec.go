package vp8

import (
	"context"
	"fmt"
	"image"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"cutroom/shared/platform/vp8/helper"
	"cutroom/shared/platform/vp8/libvpx"
)

// Codec decodes one VP8 stream and encodes another, for one session. Concurrent calls of its
// methods wait for each other.
type Codec struct {
	library *Library
	starts  *rate.Limiter
	closed  atomic.Bool

	mu     sync.Mutex
	helper *process
	// ready means that the decoder has the frames that later ones depend on.
	ready bool
	// took is the processor time of the last frame that was decoded.
	took time.Duration
	// last is the current helper, which Close can end while another goroutine holds mu.
	last atomic.Pointer[process]
}

// Decode decodes the stream's next frame into the picture, resizing it and reusing its memory. shown is false for
// frames that only prepare later ones and leave the picture unchanged.
//
// Frames must be in order and without gaps. After a gap, the decoder shows wrong frames until the next key frame.
// After an error, Decode returns ErrKeyFrame until it gets a key frame.
//
// Errors: ErrBroken, ErrTooLarge, ErrKeyFrame, ErrLost (see [NeedsKeyFrame]); ErrFailed, ErrClosed; the context's
// error, after which the next frame must be a key frame.
func (c *Codec) Decode(ctx context.Context, frame []byte, picture *image.YCbCr) (shown bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.running(ctx)
	if err != nil {
		return false, err
	}
	ready := c.ready
	c.ready, c.took = false, 0 // until this frame has been decoded
	header, ok := Inspect(frame)
	switch {
	case !ok:
		return false, ErrBroken
	case len(frame) > MaxFrame, header.Width*header.Height > MaxPixels:
		return false, ErrTooLarge
	case !header.Key && !ready:
		return false, ErrKeyFrame
	}
	copy(h.shared[helper.FrameIn:], frame)
	answer, err := c.ask(ctx, h, helper.Request{Do: helper.DoDecode, Size: uint32(len(frame))})
	c.took = time.Duration(answer.Took) * time.Microsecond
	if err != nil {
		return false, err
	}
	if c.ready = true; answer.Width == 0 {
		return false, nil
	}
	width, height := int(answer.Width), int(answer.Height)
	// A frame may have compromised the helper, so verify its response too.
	if height < 1 || width > helper.MaxSide || height > helper.MaxSide || width*height > MaxPixels {
		return false, c.drop(h)
	}
	libvpx.Resize(picture, image.Pt(width, height))
	from := h.shared[helper.PictureOut:]
	n := copy(picture.Y, from)
	n += copy(picture.Cb, from[n:])
	copy(picture.Cr, from[n:])
	return true, nil
}

// Took returns the processor time that the last Decode needed.
func (c *Codec) Took() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.took
}

// Encode encodes the stream's next 4:2:0 frame. If the size changes, it makes a key frame. Errors:
// ErrTooLarge; ErrLost, after which the next frame is a key frame; ErrFailed, ErrClosed.
func (c *Codec) Encode(ctx context.Context, picture *image.YCbCr, how Encoding) (Frame, error) {
	size := picture.Rect.Size()
	switch {
	case picture.SubsampleRatio != image.YCbCrSubsampleRatio420:
		return Frame{}, fmt.Errorf("vp8: the picture has the format %v instead of 4:2:0", picture.SubsampleRatio)
	case size.X < 1 || size.Y < 1 || size.X > helper.MaxSide || size.Y > helper.MaxSide || size.X*size.Y > MaxPixels:
		return Frame{}, ErrTooLarge
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.running(ctx)
	if err != nil {
		return Frame{}, err
	}
	write(h.shared[helper.PictureIn:helper.FrameOut], picture)
	order := helper.Request{
		Do: helper.DoEncode, Width: uint32(size.X), Height: uint32(size.Y), At: int64(how.At),
		Bitrate: uint32(min(max(how.Bitrate, leastBitrate), mostBitrate)),
	}
	if how.Key {
		order.Key = 1
	}
	answer, err := c.ask(ctx, h, order)
	if err != nil {
		return Frame{}, err
	}
	if answer.Size > helper.MaxOut {
		return Frame{}, c.drop(h)
	}
	data := append([]byte(nil), h.shared[helper.FrameOut:][:answer.Size]...)
	return Frame{Data: data, Key: len(data) > 0 && data[0]&1 == 0}, nil
}

// In kbit/s.
const leastBitrate, mostBitrate = 10, 100_000

// Close ends the helper, even while a call is waiting for it. It may be called more than once.
func (c *Codec) Close() {
	c.closed.Store(true)
	if h := c.last.Load(); h != nil {
		h.kill()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.helper != nil {
		c.helper.end()
		c.helper = nil
	}
}

// running returns the helper, starting one if necessary. The caller must hold mu. Errors: ErrFailed, ErrClosed.
func (c *Codec) running(ctx context.Context) (*process, error) {
	switch {
	case c.closed.Load():
		return nil, ErrClosed
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case c.helper != nil:
		return c.helper, nil
	case !c.starts.Allow():
		return nil, ErrFailed
	}
	h, err := c.library.start()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	c.last.Store(h)
	c.helper = h
	// If Close ran before it could see this helper, end the helper here.
	if c.closed.Load() {
		h.kill()
	}
	if _, err := c.ask(ctx, h, helper.Request{Do: helper.DoNothing}); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %s", ErrFailed, h.why())
	}
	return h, nil
}

// ask returns the helper's response. It ends the helper if the response is invalid.
func (c *Codec) ask(ctx context.Context, h *process, order helper.Request) (helper.Answer, error) {
	answer, err := h.ask(ctx, order)
	if err != nil {
		err := c.drop(h)
		if ctx.Err() != nil {
			return answer, ctx.Err()
		}
		return answer, err
	}
	switch answer.Status {
	case helper.StatusDone:
		return answer, nil
	case helper.StatusBroken:
		return answer, ErrBroken
	}
	return answer, c.drop(h)
}

func (c *Codec) drop(h *process) error {
	h.end()
	c.helper, c.ready = nil, false
	if c.closed.Load() {
		return ErrClosed
	}
	return fmt.Errorf("%w: %s", ErrLost, h.why())
}

func write(to []byte, picture *image.YCbCr) {
	width, height := picture.Rect.Dx(), picture.Rect.Dy()
	at := 0
	plane := func(from []byte, stride, width, height int) {
		if stride == width {
			at += copy(to[at:], from[:width*height])
			return
		}
		for y := range height {
			at += copy(to[at:], from[y*stride:][:width])
		}
	}
	plane(picture.Y, picture.YStride, width, height)
	plane(picture.Cb, picture.CStride, (width+1)/2, (height+1)/2)
	plane(picture.Cr, picture.CStride, (width+1)/2, (height+1)/2)
}
