package diskblob

import "os"

// writer writes buffers to a file in a goroutine that runs from startWriter to finish.
type writer struct {
	store  *Store
	file   *os.File
	queue  chan chunk
	failed chan struct{} // closed at the first error, once err is set
	done   chan struct{}
	err    error
}

type chunk struct {
	buffer *[bufferSize]byte
	n      int
}

func (s *Store) startWriter(file *os.File) *writer {
	w := &writer{
		store: s, file: file,
		queue:  make(chan chunk, buffersAhead),
		failed: make(chan struct{}), done: make(chan struct{}),
	}
	go w.run()
	return w
}

// write takes ownership of the buffer. It returns false if writing has failed.
func (w *writer) write(buffer *[bufferSize]byte, n int) bool {
	select {
	case w.queue <- chunk{buffer, n}:
		return true
	case <-w.failed:
		w.store.buffers.Put(buffer)
		return false
	}
}

// finish waits until everything has been written or writing has failed.
func (w *writer) finish() error {
	close(w.queue)
	<-w.done
	return w.err
}

func (w *writer) run() {
	defer close(w.done)
	var written, sent int64
	for c := range w.queue {
		if w.err == nil {
			var n int
			n, w.err = w.file.Write(c.buffer[:c.n])
			if w.err != nil {
				close(w.failed)
			}
			written += int64(n)
		}
		w.store.buffers.Put(c.buffer)
		// Start writing early, so that little is left for the final sync.
		if written-sent >= writeback {
			startWriteback(w.file, sent, written-sent)
			sent = written
		}
	}
}
