package ffmpeg

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"strconv"
	"strings"
	"time"
)

const controlTime = 30 * time.Second

const controlSide = 16

// control decodes a known good picture with the program, ffmpeg or ffprobe, under the usual sandbox and limits.
// If memory is true, the system must also be able to reserve all the memory that the program may use.
//
// An error means that this machine currently cannot decode anything.
func (t *Tools) control(ctx context.Context, program string, memory bool) error {
	var good, out bytes.Buffer
	if err := png.Encode(&good, image.NewGray(image.Rect(0, 0, controlSide, controlSide))); err != nil {
		return fmt.Errorf("ffmpeg: control: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, controlTime)
	defer cancel()
	if program == t.heif.Path && program != "" {
		return t.CheckHEIC(ctx)
	}
	input := []string{"-protocol_whitelist", "pipe", "-f", "png_pipe"}
	p := process{
		program: t.ffprobe,
		args:    []string{"-hide_banner", "-loglevel", "error", "-max_alloc", strconv.Itoa(t.maxAlloc())},
		stdin:   &good, stdout: &out, processorTime: t.bounds.probeTime, maxFile: 1, reserve: memory,
	}
	isGood := func() bool { return strings.Trim(out.String(), ",\n") == strconv.Itoa(controlSide) }
	if program == t.ffmpeg.Path {
		p.program, p.args = t.ffmpeg, append(append(t.globalArgs(), input...),
			"-i", "pipe:0", "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "gray", "pipe:1")
		isGood = func() bool { return out.Len() == controlSide*controlSide }
	} else {
		p.args = append(append(p.args, input...), "-show_entries", "frame=width", "-of", "csv=p=0", "pipe:0")
	}
	err := t.run(ctx, p)
	if err == nil && !isGood() {
		err = errors.New("ffmpeg: control: a known good picture was not decoded")
	}
	return err
}

//go:embed control.heic
var goodHEIC []byte

// CheckHEIC decodes a known good picture.
//
// The error explains why HEIC and AVIF pictures cannot be decoded.
func (t *Tools) CheckHEIC(ctx context.Context) (err error) {
	if t.heif.Path == "" {
		return errors.New("heif-convert is not in PATH; HEIC and AVIF pictures are rejected. Install " + heifPackage)
	}
	folder, err := os.MkdirTemp(t.Folder, "picture-")
	if err != nil {
		return fmt.Errorf("ffmpeg: control: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := t.convertHEIF(ctx, folder, bytes.NewReader(goodHEIC), nil, t.bounds.probeTime); err != nil {
		return fmt.Errorf("%s cannot decode a known good HEIC picture: %w", t.heif.Path, err)
	}
	return nil
}
