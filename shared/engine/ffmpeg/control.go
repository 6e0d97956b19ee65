package ffmpeg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strconv"
	"strings"
	"time"
)

// controlTime bounds the control.
const controlTime = 30 * time.Second

// control decodes a picture that is known to be good with ffprobe, under the
// same fence and limits as any other. If memory is true, the system must also
// reserve all the memory that the program may use.
//
// An error means that this machine cannot decode anything now.
func (t *Tools) control(ctx context.Context, memory bool) error {
	var good, out bytes.Buffer
	if err := png.Encode(&good, image.NewGray(image.Rect(0, 0, 16, 16))); err != nil {
		return fmt.Errorf("ffmpeg: control: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, controlTime)
	defer cancel()
	err := t.run(ctx, process{
		program: t.ffprobe,
		args: []string{
			"-hide_banner", "-loglevel", "error", "-max_alloc", strconv.Itoa(t.maxAlloc()),
			"-protocol_whitelist", "pipe", "-f", "png_pipe",
			"-show_entries", "frame=width", "-of", "csv=p=0", "pipe:0",
		},
		stdin: &good, stdout: &out, processorTime: t.bounds.probeTime, maxFile: 1, reserve: memory,
	})
	if err == nil && strings.Trim(out.String(), ",\n") != "16" {
		err = errors.New("ffmpeg: control: a good picture was not decoded")
	}
	return err
}
