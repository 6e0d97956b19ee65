// Package helper turns this program into a helper for package vp8, or into the process that searches for libvpx. It
// imports little, which saves time and memory in every session; see package launcher.
package helper

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"syscall"
	"time"

	"cutroom/shared/platform/sandbox/libraries"
	"cutroom/shared/platform/vp8/libvpx"
)

const (
	Name       = "cutroom-vp8-helper"
	SearchName = "cutroom-vp8-search"
)

// Any program started with a helper's argument becomes a helper, even a test; see package launcher.
func init() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == SearchName:
		libraries.Exit("vp8", json.NewEncoder(os.Stdout).Encode(search()))
	case len(os.Args) == 3 && os.Args[1] == Name:
		libraries.Exit("vp8", help(os.Args[2]))
	}
}

func search() libraries.Found {
	library, err := libvpx.Load("")
	if err != nil {
		return libraries.Found{Problem: err.Error()}
	}
	return libraries.Loaded(library.Path(), library.Version(), "libvpx")
}

type worker struct {
	shared  []byte
	decoder *libvpx.Decoder
	encoder *libvpx.Encoder
}

func help(path string) error {
	shared, err := syscall.Mmap(
		descriptor, 0, SharedSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("the shared memory: %w", err)
	}
	library, err := libvpx.Load(path)
	if err != nil {
		return err
	}
	w := &worker{shared: shared, decoder: libvpx.NewDecoder(library), encoder: libvpx.NewEncoder(library)}
	var buffer [max(RequestSize, AnswerSize)]byte
	for {
		// Plain blocking system calls suffice, because a helper does nothing else.
		if err := readAll(buffer[:RequestSize]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var order Request
		if _, err := binary.Decode(buffer[:RequestSize], binary.LittleEndian, &order); err != nil {
			return err
		}
		told, err := w.do(order)
		if err != nil {
			return err
		}
		if _, err := binary.Encode(buffer[:AnswerSize], binary.LittleEndian, told); err != nil {
			return err
		}
		if n, err := syscall.Write(1, buffer[:AnswerSize]); n != AnswerSize {
			return fmt.Errorf("answer: %w", err)
		}
	}
}

func readAll(to []byte) error {
	for len(to) > 0 {
		n, err := syscall.Read(0, to)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case n == 0:
			return io.EOF
		default:
			to = to[n:]
		}
	}
	return nil
}

// After an error, the helper exits.
func (w *worker) do(order Request) (Answer, error) {
	switch order.Do {
	case DoDecode:
		began := processorTime()
		answer, err := w.decode(order)
		answer.Took = uint32(processorTime() - began)
		return answer, err
	case DoEncode:
		return w.encode(order)
	}
	return Answer{}, nil
}

// processorTime returns the time that this process has used, in microseconds.
func processorTime() int64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // cannot fail
	return int64(used.Utime.Sec+used.Stime.Sec)*1e6 + int64(used.Utime.Usec+used.Stime.Usec)
}

func (w *worker) decode(order Request) (Answer, error) {
	var size image.Point
	shown, err := w.decoder.Decode(w.shared[FrameIn:][:order.Size], func(of image.Point) *image.YCbCr {
		size = of
		return planes(w.shared[PictureOut:PictureIn], of)
	})
	switch {
	case errors.Is(err, libvpx.ErrBroken):
		return Answer{Status: StatusBroken}, nil
	case err != nil || !shown:
		return Answer{}, err
	}
	return Answer{Width: uint32(size.X), Height: uint32(size.Y)}, nil
}

func (w *worker) encode(order Request) (Answer, error) {
	picture := planes(w.shared[PictureIn:FrameOut], image.Pt(int(order.Width), int(order.Height)))
	frame, err := w.encoder.Encode(picture, libvpx.Encoding{
		At: time.Duration(order.At), Bitrate: int(order.Bitrate), Key: order.Key == 1,
	})
	if err != nil {
		return Answer{}, err
	}
	if len(frame) > MaxOut {
		return Answer{}, fmt.Errorf("the encoded frame is too large: %d bytes", len(frame))
	}
	copy(w.shared[FrameOut:], frame)
	return Answer{Size: uint32(len(frame))}, nil
}

// planes returns a picture of the given size that uses the memory.
func planes(memory []byte, size image.Point) *image.YCbCr {
	picture := image.YCbCr{Y: memory[:0:len(memory)]}
	libvpx.Resize(&picture, size)
	return &picture
}
