package vp8

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

	"cutroom/shared/platform/fence"
	"cutroom/shared/platform/vp8/libvpx"
)

// The arguments by which this program is a helper, or the search for libvpx.
const (
	helperName = "cutroom-vp8-helper"
	searchName = "cutroom-vp8-search"
)

// A program that is run with one of these names as its first argument is a helper,
// whichever program of the service it is, including tests. As in package fence this
// is a case for init: what the rest of the program needs would be prepared for every
// session, and take the memory of each.
func init() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == searchName:
		exit(json.NewEncoder(os.Stdout).Encode(search()))
	case len(os.Args) == 3 && os.Args[1] == helperName:
		exit(help(os.Args[2]))
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "vp8:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// search finds the library and what loading it takes.
func search() found {
	library, err := libvpx.Load("")
	if err != nil {
		return found{Problem: err.Error()}
	}
	f := found{Path: library.Path(), Version: library.Version(), Loaded: fence.LoadedNow()}
	if path := f.Loaded.Find("libvpx"); path != "" {
		f.Path = path
	}
	return f
}

// worker is what a helper works with.
type worker struct {
	shared  []byte
	decoder *libvpx.Decoder
	encoder *libvpx.Encoder
}

// help does what the server asks for on standard input, until that ends.
func help(path string) error {
	shared, err := mapShared(descriptor, sharedSize)
	if err != nil {
		return fmt.Errorf("the shared memory: %w", err)
	}
	library, err := libvpx.Load(path)
	if err != nil {
		return err
	}
	w := &worker{shared: shared, decoder: libvpx.NewDecoder(library), encoder: libvpx.NewEncoder(library)}
	var buffer [max(requestSize, answerSize)]byte
	for {
		// The plain calls of the system, which block: there is nothing else to do.
		if err := readAll(buffer[:requestSize]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var order request
		if _, err := binary.Decode(buffer[:requestSize], binary.LittleEndian, &order); err != nil {
			return err
		}
		told, err := w.do(order)
		if err != nil {
			return err
		}
		if _, err := binary.Encode(buffer[:answerSize], binary.LittleEndian, told); err != nil {
			return err
		}
		if n, err := syscall.Write(1, buffer[:answerSize]); n != answerSize {
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

// do does what the server asks for. An error ends the helper.
func (w *worker) do(order request) (answer, error) {
	switch order.Do {
	case doDecode:
		return w.decode(order)
	case doEncode:
		return w.encode(order)
	}
	return answer{}, nil
}

func (w *worker) decode(order request) (answer, error) {
	var size image.Point
	shown, err := w.decoder.Decode(w.shared[frameIn:][:order.Size], func(of image.Point) *image.YCbCr {
		size = of
		return planes(w.shared[pictureOut:pictureIn], of)
	})
	switch {
	case errors.Is(err, libvpx.ErrBroken):
		return answer{Status: statusBroken}, nil
	case err != nil || !shown:
		return answer{}, err
	}
	return answer{Width: uint32(size.X), Height: uint32(size.Y)}, nil
}

func (w *worker) encode(order request) (answer, error) {
	picture := planes(w.shared[pictureIn:frameOut], image.Pt(int(order.Width), int(order.Height)))
	frame, err := w.encoder.Encode(picture, Encoding{
		At: time.Duration(order.At), Bitrate: int(order.Bitrate), Key: order.Key == 1,
	})
	if err != nil {
		return answer{}, err
	}
	if len(frame) > maxOut {
		return answer{}, fmt.Errorf("a frame of %d bytes", len(frame))
	}
	copy(w.shared[frameOut:], frame)
	return answer{Size: uint32(len(frame))}, nil
}

// planes returns the picture of a size that lies in memory.
func planes(memory []byte, size image.Point) *image.YCbCr {
	picture := image.YCbCr{Y: memory[:0:len(memory)]}
	libvpx.Resize(&picture, size)
	return &picture
}
