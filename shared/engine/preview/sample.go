package preview

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview/look"
)

const (
	// sampleSide is the longer side, in pixels, of the frames whose colors are measured.
	sampleSide   = 160
	sampleFrames = 12
)

// sample decodes the input's first frame, or key frames of the entire clip, at a small size, and applies a look. It
// returns the frames one after another, with three bytes per pixel.
func (e *edit) sample(ctx context.Context, after look.Look) ([]byte, catalog.Size, error) {
	small := *e
	side := max(e.size.Width, e.size.Height)
	small.graph = graph{folder: e.folder, prefix: "sample-", size: catalog.Size{
		Width:  max(2, e.size.Width*sampleSide/side),
		Height: max(2, e.size.Height*sampleSide/side),
	}}
	data := *e.spec.Data
	from, frames := ffmpeg.Source{Path: data.Path, MIME: data.MIME, Info: data.Info}, 1
	spread := e.fps > 0 && !e.anchored()
	if spread {
		from.Options, frames = []string{"-skip_frame", "nokey"}, sampleFrames
	}
	link := small.input(from)
	if spread {
		apart := data.Info.Duration.Seconds() / sampleFrames
		link = small.filter(fmt.Sprintf("select='isnan(prev_selected_t)+gte(t-prev_selected_t,%.3f)'", apart), link)
	}
	link, err := small.apply(small.upright(link, data), after)
	if err != nil {
		return nil, small.size, err
	}
	pixels, err := small.decode(ctx, small.filter("format=rgb24", small.colors(link)), frames)
	return pixels, small.size, err
}

// anchored reports whether the first frame represents the entire clip.
func (e *edit) anchored() bool {
	anchor, given := e.spec.Options["self_anchor"].(bool)
	return anchor || !given
}

func (e *edit) decode(ctx context.Context, link string, frames int) ([]byte, error) {
	var pixels bytes.Buffer
	err := e.stream(ctx, link, frames, &pixels)
	return pixels.Bytes(), err
}

func (e *edit) stream(ctx context.Context, link string, frames int, to io.Writer) error {
	return e.runner.Run(ctx, ffmpeg.Command{
		Folder: e.folder, Inputs: e.inputs, Stdout: to, Length: e.spec.Duration,
		Args: []string{
			"-filter_complex_threads", threads, "-filter_complex", e.String(), "-map", link,
			"-frames:v", fmt.Sprint(frames), "-vsync", "passthrough", "-f", "rawvideo", "pipe:1",
		},
	})
}

// reference decodes the reference image and scales it to a size. filters come first and must end with a comma.
func (e *edit) reference(ctx context.Context, size catalog.Size, filters string) ([]byte, error) {
	image := *e.spec.Reference
	small := *e
	small.graph = graph{folder: e.folder, size: size}
	link := small.input(ffmpeg.Source{Path: image.Path, MIME: image.MIME, Info: image.Info})
	return small.decode(ctx, small.filter(filters+ffmpeg.Plain(image.Info, small.size)+",format=rgba", link), 1)
}

// transfer returns the table to apply after the look. The table gives the input the reference image's colors.
func (e *edit) transfer(ctx context.Context, after look.Look) (*look.LUT, error) {
	before, _, err := e.sample(ctx, after)
	if err != nil {
		return nil, err
	}
	side := sampleSide / 2
	pixels, err := e.reference(ctx, catalog.Size{Width: side, Height: side}, "")
	if err != nil {
		return nil, err
	}
	return look.Transfer(look.Measure(before), look.Measure(onWhite(pixels))), nil
}

// onWhite drops the alpha channel. It also drops pixels that are mostly transparent.
func onWhite(pixels []byte) []byte {
	var opaque []byte
	for i := 0; i+3 < len(pixels); i += 4 {
		if pixels[i+3] >= 128 {
			opaque = append(opaque, pixels[i:i+3]...)
		}
	}
	return opaque
}
