package ffmpeg

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
)

const (
	// Wall-clock time. A healthy file takes a small fraction of it.
	probeTime = 2 * time.Minute
	// maxReport limits ffprobe's output, in bytes.
	maxReport = 1 << 20
)

// ffprobe prints only these entries, and no tags, which can be large. A video's properties are known after decoding
// its first frames; an image's frame also has the orientation.
const (
	pictureEntries = "width,height,pix_fmt,sample_aspect_ratio,color_range,color_space,color_transfer,color_primaries"
	videoEntries   = "format=duration,start_time:stream=codec_type,codec_name,avg_frame_rate,r_frame_rate," +
		"duration,start_time,field_order,sample_fmt," + pictureEntries + ":stream_disposition=default,attached_pic" +
		":stream_tags=alpha_mode:stream_side_data=rotation,displaymatrix"
	imageEntries = "frame=" + pictureEntries + ":frame_side_data=rotation"
)

// ProbeVideo examines a video by decoding its beginning, and checks it against the limits. It
// chooses the tracks as docs/contract/media.md#tracks specifies. Errors: [*engine.Error], with the
// code invalid_input if the file cannot be decoded or exceeds a limit.
func (t *Tools) ProbeVideo(ctx context.Context, path, mime string) (media.Info, error) {
	if kind, _ := media.Find(mime); !kind.Video {
		return media.Info{}, engine.InvalidInput(nil, "The file is not a video.")
	}
	check := func(info media.Info) error { return reject(media.CheckVideo(info, t.limits)) }
	if err := precheck(path, mime, check); err != nil {
		return media.Info{}, err
	}
	info, decoded, log, err := t.tracks(ctx, path, mime)
	if err != nil {
		return media.Info{}, err
	}
	claimed := info
	info.FrameRate = 0 // FFmpeg only guesses the rate of some videos, such as browser recordings
	if err := check(info); err != nil {
		return media.Info{}, err
	}
	info = claimed
	if !decoded {
		return media.Info{}, t.undecoded(ctx, log, "The video cannot be decoded.")
	}
	// A transport stream has no header, so FFmpeg only guesses its duration.
	unknown := info.Duration == 0 || mime == "video/mp2t"
	if unknown || media.CheckRate(info) != nil {
		measured, packets, err := t.measure(ctx, path, mime, info)
		if err != nil {
			return media.Info{}, err
		}
		info.FrameRate = float64(packets) / measured.Seconds()
		if unknown {
			info.Duration = measured
		}
	}
	return info, check(info)
}

// tracks describes a video's tracks. decoded reports whether the picture could be decoded.
func (t *Tools) tracks(ctx context.Context, path, mime string) (info media.Info, decoded bool, log string, err error) {
	report, log, err := t.ask(ctx, path, mime, "-show_entries", videoEntries)
	if err != nil {
		return media.Info{}, false, log, err
	}
	info, decoded = report.video(t.has)
	if parseSeconds(report.Format.StartTime) > lateStart {
		info.Duration = 0 // programs disagree on whether the header's duration includes the start time
	}
	info.SoundVaries = info.Audio && (info.SoundVaries || slices.Contains(unsteady, mime))
	return info, decoded, log, nil
}

// lateStart is later than the start time of any ordinary recording.
const lateStart = time.Second

// unsteady lists containers that do not declare their sound format.
var unsteady = []string{"video/mp2t", "video/ogg"}

// ProbeImage examines an image, or an animation's first frame, by decoding it, and checks it
// against the limits. Errors: as for ProbeVideo.
func (t *Tools) ProbeImage(ctx context.Context, path, mime string) (media.Info, error) {
	if kind, _ := media.Find(mime); !kind.Image {
		return media.Info{}, engine.InvalidInput(nil, "The file is not an image.")
	}
	if err := precheck(path, mime, t.checkImage); err != nil {
		return media.Info{}, err
	}
	report, log, err := t.ask(ctx, path, mime,
		"-select_streams", "v:0", "-read_intervals", "%+#1", "-show_frames", "-show_entries", imageEntries)
	if err != nil {
		return media.Info{}, err
	}
	if len(report.Frames) == 0 || report.Frames[0].Width == 0 {
		return media.Info{}, t.undecoded(ctx, log, "The image cannot be decoded.")
	}
	report.Frames[0].SampleAspectRatio = "" // browsers ignore the resolutions of images
	info := report.Frames[0].info()
	return info, t.checkImage(info)
}

// precheck names the limit that a file's header exceeds. ffprobe would only report that it cannot decode the file.
func precheck(path, mime string, check func(media.Info) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("ffmpeg: probe: %w", err)
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil {
		return fmt.Errorf("ffmpeg: probe: %w", err)
	}
	return precheckContent(file, stat.Size(), mime, check)
}

func precheckContent(r io.ReaderAt, size int64, mime string, check func(media.Info) error) error {
	info, err := media.Inspect(r, size, mime)
	if err != nil {
		return fmt.Errorf("ffmpeg: probe: %w", err)
	}
	if isHEIF(mime) && info.Width == 0 { // heif-convert has no pixel limit
		return engine.InvalidInput(nil, "The HEIC or AVIF has no readable size. Save it again, or send a JPEG or PNG.")
	}
	checks := map[string]func(io.ReaderAt, int64) error{
		"image/png": media.CheckPNG, "image/jpeg": media.CheckJPEG, "image/tiff": media.CheckTIFF,
	}
	if own := checks[mime]; own != nil {
		if err := reject(own(r, size)); err != nil {
			return err
		}
	}
	return check(info)
}

func (t *Tools) checkImage(info media.Info) error { return reject(media.CheckImage(info, t.limits)) }

func reject(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.Invalid {
		return engine.InvalidInput(f.Err, "%s", f.Message)
	}
	return err
}

// undecoded returns the error for a file whose probe succeeded but decoded nothing.
func (t *Tools) undecoded(ctx context.Context, log, message string) error {
	f := &failure{log: log, err: errors.New("nothing was decoded")}
	if known := explain(f); known != nil {
		return known
	}
	return t.inputError(ctx, f, message)
}

func (t *Tools) ask(ctx context.Context, path, mime string,
	args ...string) (report probeReport, log string, err error) {
	out := &capped{limit: maxReport}
	if log, err = t.runProbe(ctx, path, mime, out, append(args, "-of", "json")...); err != nil {
		return report, log, err
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return report, log, t.undecoded(ctx, log, "The file cannot be decoded.")
	}
	return report, log, nil
}

func (t *Tools) runProbe(ctx context.Context, path, mime string, out io.Writer,
	args ...string) (log string, err error) {
	input, err := t.sandbox(mime, t.maxPixels())
	if err != nil {
		return "", err
	}
	options := append([]string{"-hide_banner", "-loglevel", "error", "-max_alloc", strconv.Itoa(t.maxAlloc())}, input...)
	within, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	log, err = t.say(within, process{
		program:       t.ffprobe,
		args:          append(append(options, args...), "file:"+path),
		inputs:        []string{path},
		stdout:        out,
		processorTime: t.bounds.probeTime,
		maxFile:       1,
	})
	if within.Err() != nil && ctx.Err() == nil {
		// The machine or the file may be at fault.
		return "", &engine.Error{Code: job.EngineError, Message: "The file took too long to read.", Retryable: true, Err: err}
	}
	return log, t.explainProbe(ctx, err)
}

type capped struct {
	bytes.Buffer
	limit int
}

func (c *capped) Write(p []byte) (int, error) {
	if c.Len()+len(p) > c.limit {
		return 0, errors.New("the output of ffprobe is too long")
	}
	return c.Buffer.Write(p)
}
