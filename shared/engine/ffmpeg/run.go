package ffmpeg

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/media"
)

// Five minutes at 50 Mbit/s.
const defaultMaxOutput = 2 << 30

type Source struct {
	// Path is absolute. MIME is detected from the content and determines the demuxer.
	Path, MIME string
	// Info determines the CPU time allowed. It is zero if the file was not probed.
	Info media.Info
	// Options precede the input, such as "-ss", "1".
	Options []string
	// SoundFilters are joined by commas. [Source.Sound] adds them to its chain.
	SoundFilters string
}

// Command is one ffmpeg run. The package adds the restricting options.
type Command struct {
	// Output paths are relative to Folder.
	Folder string
	// Frames, if not nil, is the first input, before Inputs.
	Frames *Frames
	Inputs []Source
	// Args follows the inputs: filters, codecs and outputs. Use [Source.Picture] and
	// [Source.Sound] for the tracks that the probe describes.
	Args []string
	// Stdout, if not nil, receives the bytes written to pipe:1.
	Stdout io.Writer
	// Progress, if not nil, is called several times a second until Run returns. Calls do not overlap.
	Progress func(written time.Duration)
	// Length is the length of the output. It must be set if the output may be longer than the inputs.
	Length time.Duration
	// MaxOutput limits each written file, in bytes; 0 means 2 GiB.
	MaxOutput int64
}

// When the context ends, Run kills the program and waits for it to exit. Errors: the context's;
// [*engine.Error] if the input or the machine is at fault.
func (t *Tools) Run(ctx context.Context, command Command) error {
	args := t.globalArgs()
	var stdin io.Reader
	var paths []string
	if command.Frames != nil {
		args, stdin = append(args, command.Frames.args()...), command.Frames.Reader
	}
	for _, input := range command.Inputs {
		options, err := t.inputArgs(input)
		if err != nil {
			return err
		}
		args, paths = append(args, options...), append(paths, input.Path)
	}
	p := process{
		program:       t.ffmpeg,
		folder:        command.Folder,
		inputs:        paths,
		stdin:         stdin,
		stdout:        command.Stdout,
		processorTime: t.bounds.timeFor(command),
		maxFile:       command.MaxOutput,
		background:    true,
	}
	if p.maxFile == 0 {
		p.maxFile = defaultMaxOutput
	}
	if command.Progress != nil {
		read, write, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("ffmpeg: %w", err)
		}
		args = append(args, "-progress", "pipe:3", "-stats_period", "0.25")
		p.progress = write
		done := make(chan struct{})
		go func() {
			defer close(done)
			readProgress(read, command.Progress)
		}()
		defer func() {
			write.Close()
			<-done
			read.Close()
		}()
	}
	p.args = append(args, command.Args...)
	err := t.explainRun(ctx, command.Inputs, p.processorTime, t.run(ctx, p))
	turned := func(s Source) bool { return s.Info.Orientation > 1 }
	if at := slices.Index(command.Args, "mp4"); err == nil && at > 0 && slices.ContainsFunc(command.Inputs, turned) {
		return unturn(strings.TrimPrefix(command.Args[at+1], "file:"))
	}
	return err
}

func (t *Tools) globalArgs() []string {
	return []string{
		"-nostdin", "-hide_banner", "-y",
		"-loglevel", "error", "-nostats",
		"-max_alloc", strconv.Itoa(t.maxAlloc()),
		// If no picture is decoded, fail rather than write an empty file or one with only sound.
		"-abort_on", "empty_output+empty_output_stream",
	}
}

func (t *Tools) inputArgs(input Source) ([]string, error) {
	args, err := t.sandbox(input.MIME, t.maxPixelsOf(input.MIME))
	if err != nil {
		return nil, err
	}
	// Use only video and audio. Limit the length, because a header may understate it.
	args = append(args, "-sn", "-dn", "-t", seconds(t.limits.VideoDuration+media.Grace))
	args = append(append(args, input.trackOptions()...), input.Options...)
	return append(args, "-i", "file:"+input.Path), nil
}

// readProgress calls the function `report` for each time value in the output of "-progress", until r ends.
func readProgress(r io.Reader, report func(time.Duration)) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		// The time is "N/A" until something is written.
		value, ok := strings.CutPrefix(lines.Text(), "out_time_us=")
		if !ok {
			continue
		}
		if us, err := strconv.ParseInt(value, 10, 64); err == nil && us > 0 {
			report(time.Duration(us) * time.Microsecond)
		}
	}
	// A line that is too long ends the reports but not the run, so keep draining the pipe.
	_, _ = io.Copy(io.Discard, r)
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
