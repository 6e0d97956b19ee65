package openaimedia

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
)

// finishVideo converts a server's video to the requested size, rate and length,
// and adds the input's sound.
func (e *Engine) finishVideo(ctx context.Context, spec engine.Spec, raw string, progress func(engine.Progress)) error {
	frames := frameCount(spec)
	seconds := float64(frames) / float64(spec.FPS)
	graph := fmt.Sprintf(
		"[0:V:0]fps=%d:start_time=0,tpad=stop=-1:stop_mode=clone,trim=end_frame=%d,"+
			"scale=%d:%d:flags=bicubic:out_color_matrix=bt709:out_range=tv,setsar=1,format=yuv420p[v]",
		spec.FPS, frames, spec.Size.Width, spec.Size.Height)
	inputs := []ffmpeg.Source{{Path: raw, MIME: "video/mp4"}}
	args := []string{"-map", "[v]"}
	if spec.Data != nil && spec.Data.Info.Audio {
		inputs = append(inputs, ffmpeg.Source{Path: spec.Data.Path, MIME: spec.Data.MIME})
		graph += fmt.Sprintf(
			";[1:a:0]aresample=async=1:first_pts=0,"+
				"aformat=sample_rates=48000|44100:channel_layouts=stereo|mono,apad,atrim=end=%.6f[a]",
			seconds,
		)
		args = append(args, "-map", "[a]", "-c:a", "aac", "-b:a", "160k")
	}
	args = append([]string{"-filter_complex", graph}, args...)
	args = append(args,
		"-c:v", "libx264", "-profile:v", "high", "-preset", "veryfast", "-crf", "18", "-g", strconv.Itoa(2*spec.FPS),
		"-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv",
		// Nothing about the machine and no tags of the files go into the
		// result.
		"-fflags", "+bitexact", "-flags:v", "+bitexact", "-flags:a", "+bitexact", "-map_metadata", "-1", "-map_chapters",
		"-1",
		"-movflags", "+faststart", "-f", "mp4", "file:"+spec.Output)
	return e.finish(ctx, progress, ffmpeg.Command{
		Folder: spec.Folder, Inputs: inputs, Args: args,
		Progress: func(written time.Duration) {
			progress(engine.Progress{Fraction: min(1, generated+(1-generated)*written.Seconds()/seconds), Stage: "finish"})
		},
	})
}

// finishImage converts a server's image to the requested size, as a PNG.
func (e *Engine) finishImage(
	ctx context.Context, spec engine.Spec, raw, mime string, progress func(engine.Progress),
) error {
	return e.finish(ctx, progress, ffmpeg.Command{
		Folder: spec.Folder, Inputs: []ffmpeg.Source{{Path: raw, MIME: mime}},
		Args: []string{
			"-vf", fmt.Sprintf("scale=%d:%d:flags=bicubic,setsar=1", spec.Size.Width, spec.Size.Height),
			"-frames:v", "1", "-c:v", "png", "-fflags", "+bitexact", "-flags:v", "+bitexact", "-map_metadata", "-1",
			"-update", "1", "-f", "image2", "file:" + spec.Output,
		},
	})
}

func (e *Engine) finish(ctx context.Context, progress func(engine.Progress), command ffmpeg.Command) error {
	progress(engine.Progress{Fraction: generated, Stage: "finish"})
	err := e.runner.Run(ctx, command)
	var known *engine.Error
	if errors.As(err, &known) && known.Code == job.InvalidInput {
		// The file that cannot be decoded is the server's, not the person's.
		return failed(job.NoResultMessage, true, err)
	}
	if err != nil {
		return err
	}
	progress(engine.Progress{Fraction: 1, Stage: "finish"})
	return nil
}
