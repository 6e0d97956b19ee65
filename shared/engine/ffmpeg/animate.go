package ffmpeg

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
	"cutroom/shared/platform/panics"
)

// maxAnimated limits an animation's pixels over all frames of the clip, because this process draws them.
const maxAnimated = 2_000_000_000

// ReadVideo probes a video. FFmpeg cannot decode an animated WebP, so it is converted to an MP4 in
// the folder. Errors: as for ProbeVideo.
func (t *Tools) ReadVideo(ctx context.Context, folder, path, mime string) (engine.Input, error) {
	input := engine.Input{Path: path, MIME: mime}
	var err error
	if mime == "image/webp" {
		if input, err = t.animate(ctx, folder, path); err != nil {
			return input, err
		}
	}
	input.Info, err = t.ProbeVideo(ctx, input.Path, input.MIME)
	return input, err
}

func (t *Tools) animate(ctx context.Context, folder, path string) (engine.Input, error) {
	const mime = "image/webp"
	made := engine.Input{MIME: "video/mp4"}
	file, err := os.Open(path)
	if err != nil {
		return made, fmt.Errorf("ffmpeg: animate: %w", err)
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil {
		return made, fmt.Errorf("ffmpeg: animate: %w", err)
	}
	if err := precheckContent(file, stat.Size(), mime, t.checkImage); err != nil {
		return made, err
	}
	still, err := media.InspectStill(file, stat.Size(), mime)
	if err != nil {
		return made, fmt.Errorf("ffmpeg: animate: %w", err)
	}
	if len(still.Frames) == 0 {
		return made, engine.InvalidInput(nil, "The WebP is not animated.")
	}
	clip := newAnimation(still.Frames)
	if err := t.checkAnimation(clip); err != nil {
		return made, err
	}
	work, err := os.MkdirTemp(folder, "animation-")
	if err != nil {
		return made, fmt.Errorf("ffmpeg: animate: %w", err)
	}
	source := Source{Path: filepath.Join(work, "frames.webp"), MIME: mime, Options: []string{"-reinit_filter:v", "0"}}
	var pictures []io.Reader
	for _, frame := range still.Frames {
		pictures = append(pictures, frame.Static(file))
	}
	if err := write(source.Path, io.MultiReader(pictures...)); err != nil {
		return made, err
	}
	made.Path = filepath.Join(work, "animation.mp4")
	return made, t.draw(ctx, work, source, clip, made.Path)
}

func (t *Tools) checkAnimation(a *animation) error {
	info := media.Info{
		Width: a.size.Width, Height: a.size.Height, FrameRate: float64(a.fps), Duration: a.ends[len(a.ends)-1],
	}
	if err := reject(media.CheckVideo(info, t.limits)); err != nil {
		return err
	}
	if pixels := a.size.Width * a.size.Height * a.length(); pixels > maxAnimated {
		return engine.InvalidInput(nil, "The animation's frames total %.1f gigapixels; the limit is %d. Send a video instead.",
			float64(pixels)/1e9, maxAnimated/1_000_000_000)
	}
	return nil
}

// draw decodes the frames in one FFmpeg process and encodes the clip in another.
func (t *Tools) draw(ctx context.Context, work string, source Source, clip *animation, path string) error {
	args, err := t.inputArgs(source)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read, decoded := io.Pipe()
	clip.decoded = read
	failed := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			decoded.Close()
			failed <- err
		}()
		defer panics.Error(&err)
		// FFmpeg puts each frame in the upper left corner of a canvas.
		canvas := fmt.Sprintf("scale=iw:ih:eval=frame,format=rgba,pad=%d:%d:0:0:color=black@0:eval=frame", clip.size.Width, clip.size.Height)
		err = t.run(ctx, process{
			program: t.ffmpeg, folder: work, inputs: []string{source.Path}, stdout: decoded, maxFile: 1, background: true,
			args: append(append(append(t.globalArgs(), "-filter_threads", "1"), args...), "-map", "0:v:0", "-vf", canvas,
				"-vsync", "passthrough", "-f", "rawvideo", "pipe:1"),
			processorTime: t.bounds.runTime,
		})
	}()
	err = t.Run(ctx, Command{
		Folder: work, Frames: &Frames{Reader: clip, Size: clip.size, FPS: clip.fps},
		Args: []string{
			"-filter_complex", "[0:v:0]scale=out_color_matrix=bt709:out_range=tv,format=yuv444p[v]", "-map", "[v]",
			"-c:v", "libx264", "-preset", "veryfast", "-crf", "8", "-colorspace", "bt709", "-color_primaries", "bt709",
			"-color_trc", "bt709", "-color_range", "tv", "-f", "mp4", "file:" + path,
		},
	})
	read.Close() // this ends the decoding process
	wrong := <-failed
	switch {
	case !clip.missing:
		return err
	case wrong != nil:
		return t.explainProbe(ctx, wrong)
	}
	return engine.InvalidInput(nil, "The WebP cannot be decoded.")
}

// animation draws the frames of an animated WebP (RFC 9649, section 2.7.1.1) on white, at a constant rate.
type animation struct {
	frames []media.Frame
	ends   []time.Duration
	size   catalog.Size
	fps    int
	// decoded yields each frame as a canvas with four bytes per pixel.
	decoded io.Reader
	// missing is true if a frame was not decoded.
	missing bool
	// shown counts the frames on the canvas. drawn counts the frames of the clip.
	shown, drawn            int
	canvas, next, out, rest []byte
}

func newAnimation(frames []media.Frame) *animation {
	a := &animation{frames: frames, size: catalog.Size{Width: frames[0].Width, Height: frames[0].Height}}
	shortest, end := time.Second, time.Duration(0)
	for _, frame := range frames {
		lasts := frame.Duration
		if lasts <= 10*time.Millisecond {
			lasts = 100 * time.Millisecond // browsers do the same
		}
		shortest, end = min(shortest, lasts), end+lasts
		a.ends = append(a.ends, end)
	}
	a.fps = int(math.Ceil(time.Second.Seconds() / shortest.Seconds()))
	return a
}

func (a *animation) at(end time.Duration) int { return int(math.Round(end.Seconds() * float64(a.fps))) }

func (a *animation) length() int    { return max(1, a.at(a.ends[len(a.ends)-1])) }
func (a *animation) complete() bool { return a.drawn == a.length() }

func (a *animation) Read(to []byte) (int, error) {
	if len(a.rest) == 0 {
		if a.complete() {
			return 0, io.EOF
		}
		for a.shown == 0 || a.shown < len(a.frames) && a.at(a.ends[a.shown-1]) <= a.drawn {
			if err := a.show(); err != nil {
				return 0, err
			}
		}
		a.drawn++
		a.rest = a.out
	}
	n := copy(to, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// show draws the next frame.
func (a *animation) show() error {
	if a.canvas == nil {
		length := 4 * a.size.Width * a.size.Height
		a.canvas, a.next, a.out = make([]byte, length), make([]byte, length), make([]byte, length/4*3)
	}
	if _, err := io.ReadFull(a.decoded, a.next); err != nil {
		a.missing = true
		return fmt.Errorf("ffmpeg: a frame of the animation: %w", err)
	}
	if a.shown > 0 {
		if before := a.frames[a.shown-1]; before.Cleared {
			a.each(before, func(to, _ []byte) { clear(to) })
		}
	}
	frame := a.frames[a.shown]
	a.shown++
	a.each(frame, func(to, from []byte) {
		if alpha := int(from[3]); frame.Replaces || alpha == 255 || to[3] == 0 {
			copy(to, from)
		} else if alpha > 0 {
			under := int(to[3]) * (255 - alpha) / 255
			for c := range 3 {
				to[c] = byte((int(from[c])*alpha + int(to[c])*under) / (alpha + under))
			}
			to[3] = byte(alpha + under)
		}
	})
	for i := range len(a.canvas) / 4 {
		p, alpha := a.canvas[4*i:][:4], int(a.canvas[4*i+3])
		for c := range 3 {
			a.out[3*i+c] = byte((int(p[c])*alpha + 255*(255-alpha)) / 255)
		}
	}
	return nil
}

// each calls a function for each pixel of a frame. The function receives the pixel on the canvas (`to`) and the
// decoded pixel (`from`).
func (a *animation) each(f media.Frame, visit func(to, from []byte)) {
	for y := range min(f.High, a.size.Height-f.Y) {
		for x := range min(f.Wide, a.size.Width-f.X) {
			visit(a.canvas[4*((f.Y+y)*a.size.Width+f.X+x):][:4], a.next[4*(y*a.size.Width+x):][:4])
		}
	}
}
