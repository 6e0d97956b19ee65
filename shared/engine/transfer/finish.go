package transfer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

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

// between interpolates frames. It estimates motion in both directions and overlaps the blocks, which hides their
// edges. At a cut, it repeats a frame. It needs four frames, so short clips are extended.
const between = "tpad=stop=4:stop_mode=clone,minterpolate=fps=%d:mi_mode=mci:mc_mode=aobmc:me_mode=bidir:me=epzs:" +
	"vsbmc=0:scd=fdiff,"

// FrameCount returns the result's number of frames, at least one. The result is as long as the input.
func FrameCount(spec engine.Spec) int {
	return max(1, int(math.Round(spec.Duration.Seconds()*float64(spec.FPS))))
}

// Video converts a video to the requested size, rate and length, and adds the input's sound.
func (f Finisher) Video(ctx context.Context, spec engine.Spec, made Made, progress func(engine.Progress)) error {
	frames := FrameCount(spec)
	seconds := float64(frames) / float64(spec.FPS)
	smooth := ""
	if made.FPS > 0 && 10*made.FPS < 9*spec.FPS {
		smooth = fmt.Sprintf(between, spec.FPS)
	}
	graph := fmt.Sprintf(
		"[0:V:0]%sfps=%d:start_time=0,tpad=stop=-1:stop_mode=clone,trim=end_frame=%d,"+
			"scale=%d:%d:flags=bicubic:out_color_matrix=bt709:out_range=tv,setsar=1,format=yuv420p[v]",
		smooth, spec.FPS, frames, spec.Size.Width, spec.Size.Height)
	inputs := []ffmpeg.Source{{Path: made.Path, MIME: made.MIME}}
	args := []string{"-filter_complex", graph, "-map", "[v]"}
	if spec.Data != nil && spec.Data.Info.Audio {
		data := ffmpeg.Source{Path: spec.Data.Path, MIME: spec.Data.MIME, Info: spec.Data.Info}
		inputs = append(inputs, data)
		args = append(args, "-filter_complex", data.Sound(1, seconds, "[a]"), "-map", "[a]", "-c:a", "aac", "-b:a", "160k")
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
		Progress: func(written time.Duration) {
			progress(engine.Progress{Fraction: min(1, f.Done+(1-f.Done)*written.Seconds()/seconds), Stage: "finish"})
		},
	})
}

func (f Finisher) Image(ctx context.Context, spec engine.Spec, made Made, progress func(engine.Progress)) error {
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
	progress(engine.Progress{Fraction: f.Done, Stage: "finish"})
	err := f.Runner.Run(ctx, command)
	var known *engine.Error
	if errors.As(err, &known) && known.Code == job.InvalidInput {
		// The server's file cannot be decoded; the user's input is fine.
		return &engine.Error{Code: job.EngineError, Message: job.NoResultMessage, Retryable: true, Err: err}
	}
	if err != nil {
		return err
	}
	progress(engine.Progress{Fraction: 1, Stage: "finish"})
	return nil
}
