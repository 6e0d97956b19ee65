package media

import (
	"errors"
	"io"
)

const (
	// windowSize is the size of one read. It is large because each read may be a request to a store, and headers are
	// small and close together.
	windowSize = 64 << 10
	// maxReads limits the reads of one file. thoroughReads limits them for a thorough window (256 MiB in total).
	maxReads, thoroughReads = 48, 4096
	// maxAllBoxes limits the total number of boxes on all levels of one file.
	maxAllBoxes = 1 << 16
)

// window reads a file in a few large steps. Its methods return nil past the end of the file, or after too many reads.
type window struct {
	source io.ReaderAt
	size   int64
	buffer []byte
	start  int64
	reads  int
	// thorough raises the limit on reads.
	thorough bool
	boxes    int // boxes read so far
	err      error
}

// at returns n bytes (at most windowSize), or nil if they cannot be read. They are valid until the next call.
func (w *window) at(offset int64, n int) []byte {
	if offset < 0 || n > windowSize || offset > w.size-int64(n) {
		return nil
	}
	if offset < w.start || offset+int64(n) > w.start+int64(len(w.buffer)) {
		if !w.load(offset) || len(w.buffer) < n {
			return nil
		}
	}
	return w.buffer[offset-w.start:][:n]
}

func (w *window) load(offset int64) bool {
	if w.err != nil || w.reads == thoroughReads || w.reads == maxReads && !w.thorough {
		return false
	}
	w.reads++
	length := min(windowSize, w.size-offset)
	if int64(cap(w.buffer)) < length {
		w.buffer = make([]byte, length)
	}
	w.start, w.buffer = offset, w.buffer[:length]
	n, err := w.source.ReadAt(w.buffer, offset)
	w.buffer = w.buffer[:n]
	if err != nil && !errors.Is(err, io.EOF) {
		w.err, w.buffer = err, nil
		return false
	}
	return true
}
