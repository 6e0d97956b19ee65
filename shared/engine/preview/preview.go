// Package preview edits media on the CPU with FFmpeg, so that the service is complete on a machine without a GPU.
//
// It is a preview, not a model. It recognizes people, but no objects: it changes colors, edges and textures. A prompt
// is looked up in a lexicon of looks (package look). A reference image contributes its colors; a video from text is a
// painted landscape or abstraction chosen by words. If it follows no part of a request, it returns the input's
// picture with a notice that says so.
//
// Edits are reproducible: with the same FFmpeg build on the same kind of processor, the same request and seed produce
// the same bytes.
//
// A reference image's colors are matched to the clip's first frame if the option self_anchor is set (the default),
// otherwise to key frames of the entire clip. enhance_prompt has no effect here, because this package has no language
// model.
package preview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/engine/preview/understanding"
)

// Runner runs an FFmpeg command to completion, like [ffmpeg.Tools].
type Runner interface {
	Run(ctx context.Context, command ffmpeg.Command) error
}

// Engine keeps no state between edits and is safe for concurrent use.
type Engine struct {
	runner Runner
	// drawing is acquired by the edit that draws its textures. Drawing uses half of the processors, so several edits
	// would leave none for a server in the same process.
	drawing *semaphore.Weighted
}

var _ engine.Engine = (*Engine)(nil)

func New(runner Runner) *Engine { return &Engine{runner, semaphore.NewWeighted(1)} }

const Name = understanding.Engine

func (e *Engine) Capabilities() engine.Capabilities { return engine.Capabilities{ImageToVideo: true} }

// Run implements [engine.Engine]. The stages are "analyze" and "edit".
func (e *Engine) Run(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) (engine.Outcome, error) {
	asked := understanding.Of(understanding.Request{Kind: spec.Kind, Prompt: spec.Prompt, Reference: spec.Reference != nil})
	edit := &edit{Engine: e, spec: spec, asked: asked, progress: progress}
	edit.look = sync.OnceValue(edit.parse)
	defer edit.close()
	edit.forget()
	outcome := engine.Outcome{Engine: Name}
	var err error
	if outcome.Duration, err = edit.resize(); err != nil {
		return outcome, err
	}
	outcome.Size = edit.spec.Size
	if err := edit.run(ctx); err != nil {
		return outcome, err
	}
	outcome.Understood, outcome.Notice = edit.asked.Understood, edit.asked.Notice
	if spec.Thumbnails {
		outcome.Thumbnails = edit.thumbnails
	}
	return outcome, nil
}

func (edit *edit) run(ctx context.Context) error {
	spec := edit.spec
	edit.graph = graph{folder: spec.Folder, size: spec.Size, fps: spec.FPS, count: edit.length()}
	if spec.Data == nil && spec.Kind != catalog.TextToVideo {
		return errors.New("preview: an edit needs an input")
	}
	edit.report("analyze", 0)
	switch spec.Kind {
	case catalog.TextToVideo:
		return edit.compose(ctx)
	case catalog.Image:
		return edit.image(ctx)
	case catalog.ImageToVideo:
		return edit.animate(ctx)
	}
	return edit.video(ctx)
}

type edit struct {
	*Engine
	graph
	spec     engine.Spec
	asked    understanding.Result
	look     func() look.Look
	progress func(engine.Progress)
	captures []string
	// reported is the last reported progress, which never decreases.
	reported float64
	shown    previews
	// clip describes the input for ordinary edits.
	clip look.Clip
	// enough is the size to which larger frames are scaled before they are turned or cropped, or zero.
	enough catalog.Size
	// people is nil if the request does not need people or the input shows none.
	people      *people
	transparent bool
	// closers are closed when the edit ends.
	closers []io.Closer
}

func (e *edit) close() {
	for _, c := range e.closers {
		c.Close()
	}
}

// analyzed is the fraction of a job's progress that the analysis accounts for.
const analyzed = 0.04

func (e *edit) report(stage string, fraction float64) {
	e.reported = max(e.reported, min(fraction, 1))
	e.progress(engine.Progress{Fraction: e.reported, Stage: stage})
}

// length returns the result's number of frames, at least one. The result is as long as the input.
func (e *edit) length() int {
	return max(1, int(math.Round(e.spec.Duration.Seconds()*float64(e.spec.FPS))))
}

// parse returns the requested look. It has no operations if the engine follows no part of the request.
func (e *edit) parse() look.Look {
	if len(e.asked.Understood) == 0 {
		return look.Look{Seed: e.spec.Seed}
	}
	if e.asked.ByReference {
		return look.Reference(e.spec.Seed)
	}
	return look.Parse(e.spec.Prompt, e.spec.Seed)
}

func (e *edit) video(ctx context.Context) error {
	link, err := e.opened(ctx)
	if err != nil {
		return err
	}
	link = e.capture(link, inputThumbnail)
	if !e.has(look.Reverse) {
		if link, _, err = e.composite(ctx, link); err != nil {
			return err
		}
	}
	if link, err = e.style(ctx, link); err != nil {
		return err
	}
	if link, err = e.finish(link); err != nil {
		return err
	}
	if err := e.encode(ctx, link); err != nil {
		return err
	}
	return e.loop(ctx)
}

// style applies the look, to a part of the clip if the request is limited to it.
func (e *edit) style(ctx context.Context, link string) (string, error) {
	asked := e.look()
	switch limited := asked.Span != (look.Span{}); {
	case limited && e.fps == 0:
		return link, nil
	case !limited && !asked.Faint:
		return e.dress(ctx, link, asked)
	}
	plain, rest := e.split(e.colors(link))
	styled, err := e.dress(ctx, rest, asked)
	if err != nil {
		return "", err
	}
	styled = e.colors(styled)
	if asked.Faint {
		var under string
		under, plain = e.split(plain)
		styled = e.filter("blend=all_mode=normal:all_opacity=0.5", styled, under)
	}
	limits := asked.Span.Enable(e.spec.Duration.Seconds())
	return e.filter("overlay=format=gbrp"+limits+",format=gbrp", plain, styled), nil
}

func (e *edit) dress(ctx context.Context, link string, asked look.Look) (string, error) {
	link, err := e.paint(ctx, link, asked)
	if err != nil || e.spec.Reference == nil || len(e.asked.Understood) == 0 || !slices.Contains(e.asked.Understood, understanding.ReferenceColors) {
		return link, err
	}
	lut, err := e.transfer(ctx, asked)
	if err != nil {
		return "", err
	}
	return e.grade(link, lut)
}

// draw applies a look to a picture. It waits until no other edit is drawing.
func (e *edit) draw(ctx context.Context, link string, asked look.Look) (string, error) {
	if err := e.drawing.Acquire(ctx, 1); err != nil {
		return "", err
	}
	defer e.drawing.Release(1)
	link, err := e.apply(link, asked)
	if e.people != nil {
		link = e.colors(link) // areas may differ in their color matrix
	}
	return link, err
}

// encode writes H.264 and AAC to an MP4 file with its index in front.
func (e *edit) encode(ctx context.Context, link string) error {
	seconds := float64(e.length()) / float64(e.fps)
	link = e.capture(link, resultThumbnail)
	link = e.filter(e.broadcast()+",format=yuv420p", link)
	link, shown := e.watch(link)
	args := []string{"-filter_complex_threads", threads, "-filter_complex", e.String(), "-map", link}
	if e.spec.Data != nil && e.spec.Data.Info.Audio && !e.silent() {
		args = append(args, "-filter_complex", e.sound(seconds), "-map", "[sound]", "-c:a", "aac", "-b:a", "160k")
	}
	args = append(append(args, "-c:v", "libx264", "-profile:v", "high", "-threads", threads, "-g", fmt.Sprint(2*e.spec.FPS)),
		e.effort()...)
	args = append(args,
		"-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv",
		// Write neither information about the machine nor the input's tags to the file.
		"-fflags", "+bitexact", "-flags:v", "+bitexact", "-flags:a", "+bitexact",
		"-map_metadata", "-1", "-map_chapters", "-1", "-movflags", "+faststart", "-f", "mp4", "file:"+e.spec.Output)
	args = append(append(args, shown...), e.captures...)
	from := max(analyzed, e.reported)
	e.report("edit", from)
	err := e.runner.Run(ctx, ffmpeg.Command{
		Folder: e.folder, Frames: e.frames, Inputs: e.inputs, Args: args, Length: e.spec.Duration,
		Progress: func(written time.Duration) {
			e.report("edit", from+(1-from)*0.99*written.Seconds()/seconds)
			e.show()
		},
	})
	if err != nil {
		return err
	}
	e.report("edit", 1)
	return nil
}

// effort returns the encoder's options. Motion search takes half of the time but does not help with textures such as
// grain, which differ in every frame.
func (e *edit) effort() []string {
	switch {
	case e.people != nil && (e.paints() || erasesFaces(e.lookOf(look.Background))): // people already took much time
		return []string{"-preset", "superfast", "-crf", "20"}
	case !e.restless: // a coarser motion search takes a third less time, for files that are a tenth larger
		return []string{"-preset", "veryfast", "-crf", "20", "-x264-params", "me=dia:subme=1"}
	}
	// Without B-frames, every frame has the quality of the best one.
	return []string{"-preset", "superfast", "-crf", "20", "-x264-params", "bframes=0:rc-lookahead=0:weightp=0"}
}

// broadcast returns the filter that converts pictures to limited-range YUV. zscale takes 40% of scale's time, but does
// not support half-pixel chroma and blurs chroma more.
func (e *edit) broadcast() string {
	switch {
	case e.luma:
		return "zscale=m=709:rin=limited:r=limited:d=none"
	case len(e.asked.Understood) > 0 && e.even() && !e.crisp:
		return "zscale=m=709:rin=full:r=limited:d=none"
	}
	return "scale=out_color_matrix=bt709:out_range=tv"
}

// threads is fixed, because the encoder's output depends on it.
const threads = "4"
