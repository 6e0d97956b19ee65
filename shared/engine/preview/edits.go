package preview

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/engine/preview/person"
	"cutroom/shared/engine/preview/title"
)

const (
	// A longer result would take too long to make.
	maxLength = 5 * time.Minute
	// maxWork limits the sum of all frames' pixels, as the first edits see them: five minutes of 1280x720.
	maxWork = 6_000_000_000
	// The frames of a reversed clip are on the disk, uncompressed. This is the limit in bytes.
	maxReversed = 1 << 30
)

// resize applies the ordinary edits to the size and length in the spec, without the repeats of a loop. It returns the
// length with the repeats.
func (e *edit) resize() (time.Duration, error) {
	edits := e.asked.Edits
	e.clip = look.Clip{Length: e.spec.Duration.Seconds(), FPS: e.spec.FPS}
	if len(edits) == 0 {
		return e.spec.Duration, nil
	}
	width, height := look.SizeOf(edits, e.spec.Size.Width, e.spec.Size.Height)
	if was := e.spec.Size; e.spec.FPS > 0 || !e.has(look.Passport) {
		grown := max(1, math.Sqrt(float64(width*height)/float64(was.Width*was.Height))) * min(look.Enlargement(edits), 2)
		e.enough = catalog.Size{Width: int(grown * float64(was.Width)), Height: int(grown * float64(was.Height))}
	}
	e.spec.Size = catalog.Size{Width: width, Height: height}
	if e.spec.FPS == 0 {
		return 0, nil
	}
	e.clip.Rate = e.spec.Data.Info.FrameRate
	whole := duration(look.LengthOf(edits, e.clip.Length))
	// A short file must not take as much time as a long one.
	longest := min(maxLength, e.spec.Duration+max(time.Minute, 10*e.spec.Duration))
	if whole > longest && whole > e.spec.Duration {
		return 0, engine.InvalidInput(nil, "The result would be %.0f seconds long. The limit is %.0f seconds.",
			whole.Seconds(), longest.Seconds())
	}
	if frame := time.Second / time.Duration(e.spec.FPS); whole < frame && whole < e.spec.Duration {
		return 0, engine.InvalidInput(nil, "The result would be shorter than a frame.")
	}
	e.spec.Duration = whole
	seen := min(e.enough.Width*e.enough.Height, e.spec.Data.Info.Width*e.spec.Data.Info.Height)
	if pixels := max(seen, width*height); e.length()*pixels > maxWork {
		return 0, engine.InvalidInput(nil, "The edit takes too much work. Its result may be at most %d seconds long.", maxWork/pixels/e.spec.FPS)
	}
	if again, ok := look.Find(edits, look.Loop); ok {
		e.spec.Duration = (whole - duration(look.HeldLast(e.asked.Edits))) / time.Duration(again.Repeats())
	}
	if e.backward() && e.length()*e.frameBytes() > maxReversed {
		return 0, engine.InvalidInput(nil, "The clip is too long to play backward. The limit is %d seconds at %s.",
			maxReversed/e.frameBytes()/e.spec.FPS, e.spec.Size)
	}
	return whole, nil
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func (e *edit) has(name string) bool {
	_, found := look.Find(e.asked.Edits, name)
	return found
}

func (e *edit) silent() bool {
	mute, found := look.Find(e.asked.Edits, look.Mute)
	return found && mute.Span() == look.Span{}
}

// backward reports whether the result plays backward, at least at its end.
func (e *edit) backward() bool { return e.has(look.Reverse) || e.has(look.Boomerang) }

func (e *edit) frameBytes() int { return e.spec.Size.Width * e.spec.Size.Height * 3 / 2 }

// forget drops the edits that would not change anything.
func (e *edit) forget() {
	silent := e.spec.Data != nil && !e.spec.Data.Info.Audio
	length := e.spec.Duration.Seconds()
	e.asked.Edits = slices.DeleteFunc(slices.Clone(e.asked.Edits), func(edit look.Edit) bool {
		why, before := "", length
		length = look.LengthOf([]look.Edit{edit}, length)
		switch {
		case edit.Trims() && length == before:
			why = "Nothing was cut off: the clip is not longer than that. "
		case silent && edit.OnlySound():
			why = "The clip has no sound. "
		case edit.Exceeds(e.spec.Size.Width, e.spec.Size.Height):
			why = "The result would be too large or too small. "
		default:
			return false
		}
		e.asked.Understood = slices.DeleteFunc(slices.Clone(e.asked.Understood), func(name string) bool { return name == edit.Label() })
		e.asked.Notice = strings.TrimSpace(why + e.asked.Notice)
		return true
	})
}

// turned applies the edits that must precede scaling.
func (e *edit) turned(link string) string {
	if early := look.Filters(e.asked.Edits, look.Early, e.clip); early != "" {
		link = e.filter(early, link)
	}
	if shape := look.Filters(e.asked.Edits, look.Shape, e.clip); shape != "" {
		square := "scale=w='iw*if(gt(sar,0),sar,1)':h=ih,setsar=1,"
		if info := e.spec.Data.Info; e.enough.Width > 0 && info.Width > e.enough.Width && info.Height > e.enough.Height {
			square += fmt.Sprintf("scale=%d:%d:force_original_aspect_ratio=increase,", e.enough.Width, e.enough.Height)
		}
		link = e.filter(square+shape, link)
	}
	return link
}

// aim makes crops and moves of the camera keep the largest face of the middle frame.
func (e *edit) aim(ctx context.Context) error {
	at := slices.IndexFunc(e.asked.Edits, look.Edit.Crops)
	if e.spec.Kind == catalog.ImageToVideo {
		at = 0
	} else if at < 0 {
		return nil
	}
	middle, data, size := *e, *e.spec.Data, catalog.Size{Width: 512, Height: 512}
	middle.asked.Edits, middle.graph = e.asked.Edits[:at], graph{folder: e.folder, fps: e.fps}
	link := middle.turned(middle.input(ffmpeg.Source{Path: data.Path, MIME: data.MIME, Info: data.Info}))
	fit := fmt.Sprintf("scale=%[1]d:%[1]d:force_original_aspect_ratio=decrease,pad=%[1]d:%[1]d:-1:-1,format=rgb24", size.Width)
	if e.fps > 0 && e.spec.Kind != catalog.ImageToVideo { // the last frame may begin before the middle
		forward := slices.DeleteFunc(slices.Clone(middle.asked.Edits), func(o look.Edit) bool { return o.Name() == look.Boomerang })
		half := look.LengthOf(forward, e.clip.Length) / 2
		fit = fmt.Sprintf("fps=%d:start_time=0,tpad=stop=-1:stop_mode=clone,select='gte(t,%g)',", e.fps, half) + fit
	}
	pixels, err := middle.decode(ctx, middle.filter(fit, link), 1)
	if err != nil || len(pixels) < 3*size.Width*size.Height {
		return err
	}
	faces, err := person.Faces(pixels, size)
	for largest := 0.0; len(faces) > 0; faces = faces[1:] {
		if face := faces[0]; face.Size > largest {
			largest, e.clip.Right, e.clip.Down, e.clip.Face = face.Size, face.X-0.5, face.Y-0.5, face.Size
		}
	}
	if e.has(look.Passport) && e.clip.Face == 0 {
		e.asked.Notice = strings.TrimSpace("No face was found, so the passport photo shows the center. " + e.asked.Notice)
	}
	return err
}

// opened returns the link of the input's frames, at the result's size and rate.
func (e *edit) opened(ctx context.Context) (string, error) {
	if err := e.aim(ctx); err != nil {
		return "", err
	}
	data := *e.spec.Data
	read := func(e *edit) string {
		from := ffmpeg.Source{Path: data.Path, MIME: data.MIME, Info: data.Info}
		if e.step > 1 {
			from.Options = []string{"-skip_frame", "noref", "-skip_loop_filter", "all"}
		}
		return e.upright(e.turned(e.input(from)), data)
	}
	same := func(_ *edit, link string) (string, error) { return link, nil }
	// The function `before` creates a file that the main run needs, by running the beginning of the graph.
	before := func(after func(*edit, string) (string, error), filters string, args ...string) error {
		first := *e
		link, err := after(&first, read(&first))
		if err != nil {
			return err
		}
		link = first.filter(filters, first.colors(link))
		args = append([]string{"-filter_complex_threads", threads, "-filter_complex", first.String(), "-map", link}, args...)
		return e.runner.Run(ctx, ffmpeg.Command{
			Folder: e.folder, Frames: first.frames, Inputs: first.inputs, Args: args, Length: e.spec.Duration,
		})
	}
	if e.has(look.Stabilize) {
		const found = "motion.trf"
		steady := "vidstabtransform=input=" + found + ":smoothing=12"
		if err := before(same, "format=yuv420p,vidstabdetect=accuracy=8:result="+found, "-f", "null", "pipe:1"); err != nil {
			if ctx.Err() != nil {
				return "", err
			}
			steady = "deshake" // this FFmpeg may lack vid.stab
		}
		plain := read
		read = func(e *edit) string {
			link := plain(e)
			if e.luma {
				return e.filter(steady, link)
			}
			return e.filter("format=yuv420p,"+steady+",format=gbrp", link)
		}
	}
	whole := e.spec.Duration
	if e.has(look.Boomerang) {
		e.spec.Duration /= 2
		defer func() { e.spec.Duration = whole }()
	}
	if err := e.scan(ctx, read); err != nil || !e.backward() {
		return read(e), err
	}
	const file = "frames.yuv"
	composite := func(e *edit, link string) (string, error) {
		link, _, err := e.composite(ctx, link)
		return link, err
	}
	err := before(composite, "scale=out_color_matrix=bt709:out_range=tv,format=yuv420p", "-f", "rawvideo", "file:"+file)
	if err != nil {
		return "", err
	}
	frames, err := engine.OpenRegular(filepath.Join(e.folder, file))
	if err != nil {
		return "", fmt.Errorf("preview: %w", err)
	}
	e.closers = append(e.closers, frames)
	e.people = nil // no longer valid, because people were found in frames that play forward
	info, err := frames.Stat()
	if err != nil {
		return "", fmt.Errorf("preview: %w", err)
	}
	frame, count := make([]byte, e.frameBytes()), info.Size()/int64(e.frameBytes())
	left := count
	if e.has(look.Boomerang) {
		left = 2 * count
	}
	backward := func() ([]byte, error) {
		if left == 0 {
			return nil, io.EOF
		}
		left--
		_, err := frames.ReadAt(frame, min(left, 2*count-1-left)*int64(len(frame)))
		return frame, err
	}
	e.frames = &ffmpeg.Frames{Reader: &frameReader{next: backward}, Size: e.size, FPS: e.fps, Planar: true}
	e.inputs = append(e.inputs, ffmpeg.Source{Path: data.Path, MIME: data.MIME, Info: data.Info}) // to keep its sound
	return e.filter("setparams=range=tv:colorspace=bt709,format=gbrp", "[0:v:0]"), nil
}

// sound returns the audio filters for the input.
func (e *edit) sound(seconds float64) string {
	source, number := e.inputs[0], 0
	if e.frames != nil {
		number = 1
	}
	if filters := look.Filters(e.asked.Edits, look.Sound, e.clip); filters != "" {
		// Cut sound that is longer than the picture. Otherwise it would be reversed first and fill the memory.
		source.SoundFilters = fmt.Sprintf("apad,atrim=end=%.6f,%s", e.clip.Length, filters)
	}
	return source.Sound(number, seconds, "[sound]")
}

// finish applies the edits that follow the look.
func (e *edit) finish(link string) (string, error) {
	clip := e.clip
	clip.Width, clip.Height, clip.Length = e.size.Width, e.size.Height, e.spec.Duration.Seconds()
	if slices.ContainsFunc(e.asked.Edits, look.Edit.Centers) {
		clip.Right, clip.Down = 0, 0 // the subject is already in the center
	}
	for _, edit := range e.asked.Edits {
		switch edit.Name() {
		case look.Title:
			text, err := title.Draw(edit.Text(), look.RGB(edit.Color("white")), look.RGB(edit.Box()), e.size, edit.Scale())
			if err != nil {
				return "", fmt.Errorf("preview: %w", err)
			}
			drawn, err := e.picture(text)
			if err != nil {
				return "", err
			}
			link = e.place(link, drawn, edit)
		case look.Logo:
			logo := e.spec.Reference
			drawn := e.input(ffmpeg.Source{Path: logo.Path, MIME: logo.MIME, Info: logo.Info})
			side := min(e.size.Width, e.size.Height) / 4
			link = e.place(link, e.filter(fmt.Sprintf("scale='max(1,%[1]d*min(1,a))':'max(1,%[1]d/max(1,a))'", side), drawn), edit)
		default:
			if filters := look.Filters([]look.Edit{edit}, look.Late, clip); filters != "" {
				link = e.filter(filters+",format=gbrap|gbrp", e.colors(link))
			}
		}
	}
	return link, nil
}

// place lays a picture over the link, at the position that the edit requests and at a distance from the border.
func (e *edit) place(link, drawn string, edit look.Edit) string {
	across, down := edit.Place()
	margin := min(e.size.Width, e.size.Height) / 20
	at := func(side string, to float64) string {
		return fmt.Sprintf("(main_%[1]s-overlay_%[1]s)/2*(1%+.0[2]f)%+[3]d", side, to, -int(to)*margin)
	}
	limits := edit.Span().Enable(e.spec.Duration.Seconds())
	return e.filter(fmt.Sprintf("overlay=x=%s:y=%s:format=auto%s", at("w", across), at("h", down), limits), e.colors(link), e.filter("format=rgba", drawn))
}

// loop repeats the finished result. It does not encode it again, unless the last frame is held after the repeats.
func (e *edit) loop(ctx context.Context) error {
	again, ok := look.Find(e.asked.Edits, look.Loop)
	if !ok {
		return nil
	}
	once := filepath.Join(e.folder, "once.mp4")
	if err := os.Rename(e.spec.Output, once); err != nil {
		return fmt.Errorf("preview: %w", err)
	}
	codec := []string{"-c", "copy"}
	if held := look.HeldLast(e.asked.Edits); held > 0 {
		codec = append([]string{"-vf", fmt.Sprintf("tpad=stop_mode=clone:stop_duration=%g", held), "-af",
			fmt.Sprintf("apad=pad_dur=%g", held), "-c:a", "aac", "-c:v", "libx264", "-threads", threads}, e.effort()...)
	}
	return e.runner.Run(ctx, ffmpeg.Command{
		Folder: e.folder,
		Inputs: []ffmpeg.Source{{
			Path: once, MIME: "video/mp4", Options: []string{"-stream_loop", fmt.Sprint(again.Repeats() - 1)},
		}},
		Args: slices.Concat([]string{"-map", "0"}, codec, []string{
			"-flags:v", "+bitexact", "-flags:a", "+bitexact", "-fflags", "+bitexact", "-movflags", "+faststart",
			"-f", "mp4", "file:" + e.spec.Output,
		}),
	})
}
