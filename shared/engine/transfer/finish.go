package transfer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
)

// Runner runs an FFmpeg command to completion, like [ffmpeg.Tools].
type Runner interface {
	Run(ctx context.Context, command ffmpeg.Command) error
}

// Finisher converts a server's result to the size, rate, length and sound that the catalog promises.
type Finisher struct {
	Runner Runner
	// Done is the progress before the conversion, from 0 to 1.
	Done float64
}

type Made struct {
	// MIME is detected from the content.
	Path, MIME string
	// FPS is a video's frame rate if it is known. Frames are interpolated if it is more than 10 % below the result's.
	FPS int
}

// between makes the frames of one part of a video at a higher rate. It estimates motion in both directions and overlaps
// the blocks, which hides their edges. At a cut, it repeats a frame.
const between = "[0:V:0]fps=%d:start_time=0,tpad=stop=-1:stop_mode=clone,trim=start_frame=%d:end_frame=%d," +
	"minterpolate=fps=%d:mi_mode=mci:mc_mode=aobmc:me_mode=bidir:me=epzs:vsbmc=0:scd=fdiff," +
	"trim=start_pts=%d:end_pts=%d,setpts=PTS-STARTPTS[v]"

const (
	maxParts = 8
	// The interpolation needs two frames before and after a frame. With more, parts join almost without a difference.
	neighbors = 5
)

// FrameCount returns the result's number of frames, at least one. The result is as long as the input.
func FrameCount(spec engine.Spec) int {
	return max(1, int(math.Round(spec.Duration.Seconds()*float64(spec.FPS))))
}

// Video converts a video to the requested size, rate and length, and adds the input's sound.
func (f Finisher) Video(ctx context.Context, spec engine.Spec, made Made, progress func(engine.Progress)) error {
	frames := FrameCount(spec)
	seconds := float64(frames) / float64(spec.FPS)
	progress(engine.Progress{Fraction: f.Done, Stage: "finish"})
	done := f.Done
	report := func(written time.Duration, until float64) {
		progress(engine.Progress{Fraction: min(until, done+(until-done)*written.Seconds()/seconds), Stage: "finish"})
	}
	inputs := []ffmpeg.Source{{Path: made.Path, MIME: made.MIME}}
	video := "[0:V:0]"
	if made.FPS > 0 && 10*made.FPS < 9*spec.FPS {
		interpolated := (1 + f.Done) / 2
		parts, err := f.interpolate(ctx, spec, made, func(written time.Duration) { report(written, interpolated) })
		if err != nil {
			return resultError(err)
		}
		inputs, done = parts, interpolated
		video = joined(len(parts))
	}
	graph := fmt.Sprintf(
		"%sfps=%d:start_time=0,tpad=stop=-1:stop_mode=clone,trim=end_frame=%d,"+
			"scale=%d:%d:flags=bicubic:out_color_matrix=bt709:out_range=tv,setsar=1,format=yuv420p[v]",
		video, spec.FPS, frames, spec.Size.Width, spec.Size.Height)
	args := []string{"-filter_complex", graph, "-map", "[v]"}
	if spec.Data != nil && spec.Data.Info.Audio {
		data := ffmpeg.Source{Path: spec.Data.Path, MIME: spec.Data.MIME, Info: spec.Data.Info}
		sound := data.Sound(len(inputs), seconds, "[a]")
		inputs = append(inputs, data)
		args = append(args, "-filter_complex", sound, "-map", "[a]", "-c:a", "aac", "-b:a", "160k")
	}
	args = append(args,
		"-c:v", "libx264", "-profile:v", "high", "-preset", "veryfast", "-crf", "18", "-g", strconv.Itoa(2*spec.FPS),
		"-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv",
		// The result must not contain metadata about the machine or the files.
		"-fflags", "+bitexact", "-flags:v", "+bitexact", "-flags:a", "+bitexact", "-map_metadata", "-1", "-map_chapters",
		"-1",
		"-movflags", "+faststart", "-f", "mp4", "file:"+spec.Output)
	return f.finish(ctx, progress, ffmpeg.Command{
		Folder: spec.Folder, Inputs: inputs, Args: args,
		Progress: func(written time.Duration) { report(written, 1) },
	})
}

// interpolate raises a video's frame rate to the result's. FFmpeg interpolates on one core, so it makes several parts
// at the same time. progress receives the length that is done.
func (f Finisher) interpolate(ctx context.Context, spec engine.Spec, made Made,
	progress func(time.Duration)) ([]ffmpeg.Source, error) {
	frames := FrameCount(spec)
	parts := make([]ffmpeg.Source, min(runtime.GOMAXPROCS(0), maxParts, max(1, frames/spec.FPS)))
	group, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		parts[i] = ffmpeg.Source{Path: filepath.Join(spec.Folder, fmt.Sprintf("part-%d.mp4", i)), MIME: "video/mp4"}
		first, end := frames*i/len(parts), frames*(i+1)/len(parts)
		command := ffmpeg.Command{
			Folder: spec.Folder, Inputs: []ffmpeg.Source{{Path: made.Path, MIME: made.MIME}},
			Args: []string{
				"-filter_complex", fmt.Sprintf(between, made.FPS, max(0, first*made.FPS/spec.FPS-neighbors),
					end*made.FPS/spec.FPS+neighbors, spec.FPS, first, end),
				"-map", "[v]", "-an", "-c:v", "libx264", "-preset", "ultrafast", "-crf", "8", "-f", "mp4", "file:" + parts[i].Path,
			},
		}
		if i == 0 {
			// All parts take about the same time.
			command.Progress = func(written time.Duration) { progress(written * time.Duration(len(parts))) }
		}
		group.Go(func() error { return f.Runner.Run(ctx, command) })
	}
	return parts, group.Wait()
}

// joined returns the start of a filter graph that plays the videos of n inputs one after the other.
func joined(n int) string {
	if n == 1 {
		return "[0:V:0]"
	}
	inputs := ""
	for i := range n {
		inputs += fmt.Sprintf("[%d:V:0]", i)
	}
	return fmt.Sprintf("%sconcat=n=%d,", inputs, n)
}

func (f Finisher) Image(ctx context.Context, spec engine.Spec, made Made, progress func(engine.Progress)) error {
	progress(engine.Progress{Fraction: f.Done, Stage: "finish"})
	return f.finish(ctx, progress, ffmpeg.Command{
		Folder: spec.Folder, Inputs: []ffmpeg.Source{{Path: made.Path, MIME: made.MIME}},
		Args: []string{
			"-vf", fmt.Sprintf("scale=%d:%d:flags=bicubic,setsar=1", spec.Size.Width, spec.Size.Height),
			"-frames:v", "1", "-c:v", "png", "-fflags", "+bitexact", "-flags:v", "+bitexact", "-map_metadata", "-1",
			"-update", "1", "-f", "image2", "file:" + spec.Output,
		},
	})
}

func (f Finisher) finish(ctx context.Context, progress func(engine.Progress), command ffmpeg.Command) error {
	if err := f.Runner.Run(ctx, command); err != nil {
		return resultError(err)
	}
	progress(engine.Progress{Fraction: 1, Stage: "finish"})
	return nil
}

// resultError returns the error for a server's file that cannot be decoded. The user's input is fine.
func resultError(err error) error {
	var known *engine.Error
	if errors.As(err, &known) && known.Code == job.InvalidInput {
		return &engine.Error{Code: job.EngineError, Message: job.NoResultMessage, Retryable: true, Err: err}
	}
	return err
}
