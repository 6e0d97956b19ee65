package ffmpeg

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/media"
)

// defaultMaxOutput bounds a written file if the command sets no limit: five
// minutes at 50 Mbit/s.
const defaultMaxOutput = 2 << 30

// Source is one input of a command.
type Source struct {
	// Path is the file, absolute; MIME, detected from its content, chooses the
	// demuxer.
	Path, MIME string
	// Info comes from the probe and sets the processor time of a command; zero if the file
	// was not probed.
	Info media.Info
	// Options precede the input, such as "-ss", "1".
	Options []string
}

// Command is one run of ffmpeg. The package adds the options that fence it.
type Command struct {
	// Folder is the working folder; outputs are named relative to it.
	Folder string
	// Frames, when not nil, are the first input, before Inputs.
	Frames *Frames
	Inputs []Source
	// Args follow the inputs: filters, codecs and outputs. Streams are best
	// mapped as "0:V:0" (the first video track that is not a cover picture) and
	// "0:a:0?", which are those that the probe describes.
	Args []string
	// Stdout, when not nil, receives what is written to pipe:1.
	Stdout io.Writer
	// Progress, when not nil, is called with the time written so far, from one
	// goroutine at a time, several times a second, and not after Run has
	// returned.
	Progress func(written time.Duration)
	// MaxOutput bounds the size of each file written, in bytes; 0 means the
	// default of 2 GiB.
	MaxOutput int64
}

// Run runs the command to its end. When the context ends, the program is killed
// and gone before Run returns.
//
// Errors: the context's; [*engine.Error], which says whether the input is to
// blame.
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
	return t.explainRun(ctx, command.Inputs, p.processorTime, t.run(ctx, p))
}

// globalArgs are the options of every run.
func (t *Tools) globalArgs() []string {
	return []string{
		"-nostdin", "-hide_banner", "-y",
		"-loglevel", "error", "-nostats",
		"-max_alloc", strconv.Itoa(t.maxAlloc()),
		// Without a picture there is no result: an error, not an empty file, nor one of sound
		// alone.
		"-abort_on", "empty_output+empty_output_stream",
	}
}

// inputArgs returns the options that fence an input, those of the caller, and
// the input.
func (t *Tools) inputArgs(input Source) ([]string, error) {
	args, err := t.fence(input.MIME, t.maxPixelsOf(input.MIME))
	if err != nil {
		return nil, err
	}
	// Nothing but pictures and sound is of use, and a header that claims little
	// may be followed by much.
	args = append(args, "-sn", "-dn", "-t", seconds(t.limits.VideoDuration+media.Grace))
	args = append(args, input.Options...)
	return append(args, "-i", "file:"+input.Path), nil
}

// readProgress calls report for every time in the output of "-progress", until
// the end of r.
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
	// A line too long to be ffmpeg's ends the reports, not the run: the pipe
	// must still be drained.
	_, _ = io.Copy(io.Discard, r)
}

// seconds formats a duration for ffmpeg.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}
