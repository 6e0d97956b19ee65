package main

import (
	"context"
	"fmt"
	"image"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"cutroom/shared/platform/sandbox"
	"cutroom/shared/platform/vp8"
	"cutroom/shared/platform/vp8/libvpx"
)

const (
	codecFrames, codecRounds = 150, 4
	// codecBar is the maximum CPU time of a sandboxed stream, as a multiple of libvpx's time.
	codecBar = 1.3
)

// codec decodes and encodes a live stream as a session without a prompt does, once with the sandboxed codec and once
// with libvpx in this process, which is the floor.
func (b *bench) codec(ctx context.Context) error {
	direct, err := libvpx.Load("")
	if err != nil {
		return err
	}
	box, err := sandbox.New(ctx)
	if err != nil {
		return err
	}
	found, err := vp8.Find(ctx, box)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		size    image.Point
		bitrate int
	}{{image.Pt(640, 360), 1500}, {image.Pt(1280, 720), 2500}} {
		frames, err := b.stream(ctx, direct, c.size, c.bitrate)
		if err != nil {
			return err
		}
		var measured, floor []time.Duration
		for range codecRounds {
			alone, err := timed(func() error {
				return passDirect(direct, frames, c.bitrate, func() error { return nil })
			})
			if err != nil {
				return err
			}
			took, err := timed(func() error { return passSandboxed(ctx, found, frames, c.bitrate) })
			if err != nil {
				return err
			}
			measured, floor = append(measured, took/codecFrames), append(floor, alone/codecFrames)
		}
		b.table.add(row{
			what:     fmt.Sprintf("CPU time of a %dx%d frame of live VP8, decoded and encoded", c.size.X, c.size.Y),
			measured: short(median(measured)), floor: short(median(floor)) + " " + found.String() + " alone",
			ratio: ratio(median(measured), median(floor)), bar: fmt.Sprintf("%.1f x", codecBar),
			verdict: verdictOf(median(measured).Seconds() <= codecBar*median(floor).Seconds()),
		})
	}
	return nil
}

// stream encodes the clip as a live client would.
func (b *bench) stream(ctx context.Context, l *libvpx.Library, size image.Point, bitrate int) ([][]byte, error) {
	raw, err := exec.CommandContext(ctx, "ffmpeg", "-v", "error", "-stream_loop", "-1", "-i", b.clip,
		"-vf", fmt.Sprintf("scale=%d:%d,fps=25", size.X, size.Y), "-frames:v", fmt.Sprint(codecFrames),
		"-pix_fmt", "yuv420p", "-f", "rawvideo", "-").Output()
	if err != nil {
		return nil, fmt.Errorf("take pictures of the clip: %w", err)
	}
	encoder := libvpx.NewEncoder(l)
	defer encoder.Close()
	var picture image.YCbCr
	libvpx.Resize(&picture, size)
	var frames [][]byte
	for i := range codecFrames {
		for _, plane := range [][]byte{picture.Y, picture.Cb, picture.Cr} {
			raw = raw[copy(plane, raw):]
		}
		frame, err := encoder.Encode(&picture, passed(i, bitrate))
		if err != nil {
			return nil, err
		}
		frames = append(frames, append([]byte(nil), frame...))
	}
	return frames, nil
}

func passed(i, bitrate int) vp8.Encoding {
	return vp8.Encoding{At: time.Duration(i) * time.Second / 25, Bitrate: bitrate}
}

// passDirect decodes and encodes frames with libvpx in this process. It calls the function `wait` before each frame.
func passDirect(l *libvpx.Library, frames [][]byte, bitrate int, wait func() error) error {
	decoder, encoder := libvpx.NewDecoder(l), libvpx.NewEncoder(l)
	defer decoder.Close()
	defer encoder.Close()
	var picture image.YCbCr
	for i, frame := range frames {
		if err := wait(); err != nil {
			return err
		}
		if _, err := decoder.Decode(frame, func(size image.Point) *image.YCbCr {
			libvpx.Resize(&picture, size)
			return &picture
		}); err != nil {
			return err
		}
		if _, err := encoder.Encode(&picture, passed(i, bitrate)); err != nil {
			return err
		}
	}
	return nil
}

func timed(work func() error) (time.Duration, error) {
	begun, err := processorTimeOfAll()
	if err != nil {
		return 0, err
	}
	if err := work(); err != nil {
		return 0, err
	}
	ended, err := processorTimeOfAll()
	return ended - begun, err
}

// passSandboxed does the same as passDirect, in a helper process. Its time includes starting the helper.
func passSandboxed(ctx context.Context, l *vp8.Library, frames [][]byte, bitrate int) error {
	codec, err := l.Open(ctx)
	if err != nil {
		return err
	}
	defer codec.Close() // the system counts a child's CPU time only after it has exited
	var picture image.YCbCr
	for i, frame := range frames {
		if _, err := codec.Decode(ctx, frame, &picture); err != nil {
			return err
		}
		if _, err := codec.Encode(ctx, &picture, passed(i, bitrate)); err != nil {
			return err
		}
	}
	return nil
}

// processorTimeOfAll returns the CPU time of this process and its ended children.
func processorTimeOfAll() (time.Duration, error) {
	var sum time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if err := unix.Getrusage(who, &usage); err != nil {
			return 0, err
		}
		sum += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return sum, nil
}
