package ffmpeg

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
)

// In CPU time.
const stillTime = 5 * time.Second

// Still decodes a picture, or an animation's first frame, for a program that does not decode untrusted pictures
// itself. The pixels match ReadImage's, scaled down if the longer side exceeds the given number of pixels. The result
// is stored row by row from the top, with four bytes per pixel: red, green, blue and alpha, not premultiplied. The
// data goes through pipes rather than the disk, unless the picture must be converted first.
//
// Errors: fault.Invalid if the bytes are not a decodable picture of the type; fault.Unavailable if the machine is at
// fault.
func (t *Tools) Still(ctx context.Context, data []byte, mime string,
	side int) (pixels []byte, size catalog.Size, err error) {
	if kind, _ := media.Find(mime); !kind.Image {
		return nil, size, fault.New(fault.Invalid, "The file is not an image.")
	}
	if err := precheckContent(bytes.NewReader(data), int64(len(data)), mime, t.checkImage); err != nil {
		return nil, size, explained(ctx, err)
	}
	if data, mime, err = t.developed(ctx, data, mime, side); err != nil {
		return nil, size, err
	}
	input, err := t.sandbox(mime, t.maxPixels())
	if err != nil {
		return nil, size, fault.Wrap(err, fault.Invalid, "The file is not an image.")
	}
	if mime == "image/gif" {
		// The usual demuxer would have to seek in a long animation, which is impossible in a pipe.
		input = append(input, "-f", "gif_pipe")
	}
	out := &capped{limit: maxStillHeader + 4*side*side}
	err = t.run(ctx, process{
		program: t.ffmpeg, args: t.stillArgs(input, len(data), side), stdin: bytes.NewReader(data), stdout: out,
		processorTime: stillTime, maxFile: 1,
	})
	if ctx.Err() != nil {
		return nil, size, ctx.Err()
	}
	if err != nil {
		return nil, size, t.explainStill(ctx, err)
	}
	return readStill(&out.Buffer, side)
}

func (t *Tools) developed(ctx context.Context, data []byte, mime string, side int) (_ []byte, _ string, err error) {
	still, err := media.InspectStill(bytes.NewReader(data), int64(len(data)), mime)
	if filters, _ := corrections(still); err != nil || filters == nil && !isHEIF(mime) {
		return data, mime, err
	}
	folder, err := os.MkdirTemp(t.Folder, "picture-")
	if err != nil {
		return nil, "", fmt.Errorf("ffmpeg: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	input := engine.Input{Path: filepath.Join(folder, "image"), MIME: mime}
	if err := os.WriteFile(input.Path, data, 0o600); err != nil {
		return nil, "", fmt.Errorf("ffmpeg: %w", err)
	}
	if input, err = t.develop(ctx, folder, input, side, stillTime); err != nil {
		return nil, "", explained(ctx, err)
	}
	data, err = os.ReadFile(input.Path)
	return data, input.MIME, err
}

func (t *Tools) stillArgs(input []string, length, side int) []string {
	// If an option is given twice, the last one wins.
	input = append(input, "-protocol_whitelist", "pipe", "-threads", "1")
	if strings.Contains(strings.Join(input, " "), "_pipe ") {
		// Treat the entire file as one frame.
		input = append(input, "-frame_size", strconv.Itoa(length))
	}
	args := append(t.globalArgs(), "-filter_threads", "1")
	args = append(append(args, input...), "-i", "pipe:0")
	return append(args, "-map", "0:v:0", "-vf", "setsar=1,"+fitted(side), "-frames:v", "1", "-c:v", "pam", "-f",
		"image2pipe", "pipe:1")
}

// fitted scales a picture down for readStill if its longer side exceeds the given number of pixels.
func fitted(side int) string { return scaled(side) + ",format=rgba" }

func scaled(side int) string { return "scale=" + within(side) + ":flags=bicubic" }

// within scales a picture down if its longer side exceeds the given number of pixels, and makes its pixels square.
func within(side int) string {
	fit := fmt.Sprintf("max(1,trunc(%%s*min(1,%d/max(iw*sar,ih))))", side)
	return fmt.Sprintf("w='%s':h='%s'", fmt.Sprintf(fit, "iw*sar"), fmt.Sprintf(fit, "ih"))
}

// The command is always the same, so either the picture or the machine is at fault.
func (t *Tools) explainStill(ctx context.Context, err error) error {
	return explained(ctx, t.explainProbe(ctx, err))
}

// explained converts an error that explainProbe has returned to a fault. If the context has ended, it returns the
// context's error.
func explained(ctx context.Context, err error) error {
	var known *engine.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &known) && known.Code == job.InvalidInput && known.Err == nil:
		return fault.New(fault.Invalid, "%s", known.Message)
	case errors.As(err, &known) && known.Code == job.InvalidInput:
		return fault.Wrap(known.Err, fault.Invalid, "The image cannot be decoded.")
	}
	return fault.Wrap(err, fault.Unavailable, "The image cannot be decoded now. Try again.")
}

// In bytes.
const maxStillHeader = 128

// A PAM file has text lines, followed by the pixels.
func readStill(from io.Reader, side int) (pixels []byte, size catalog.Size, err error) {
	broken := errors.New("ffmpeg: the decoded picture is invalid")
	reader := bufio.NewReader(from)
	for name := ""; name != "ENDHDR"; {
		line, err := reader.ReadString('\n')
		if err != nil {
			return nil, size, broken
		}
		var value string
		name, value, _ = strings.Cut(strings.TrimSpace(line), " ")
		number, _ := strconv.Atoi(value)
		switch name {
		case "WIDTH":
			size.Width = number
		case "HEIGHT":
			size.Height = number
		}
	}
	if size.Width < 1 || size.Height < 1 || size.Width > side || size.Height > side {
		return nil, size, broken
	}
	pixels = make([]byte, 4*size.Width*size.Height)
	if _, err := io.ReadFull(reader, pixels); err != nil {
		return nil, size, broken
	}
	return pixels, size, nil
}
