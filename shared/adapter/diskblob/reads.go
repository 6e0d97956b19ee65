package diskblob

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"cutroom/shared/domain/blob"
)

// reads holds the open files by blob name. Deleting a blob closes its files, so that a slow reader does not keep the
// bytes on the disk.
type reads struct {
	mu   sync.Mutex
	open map[string]map[*read]bool
}

type read struct {
	io.LimitedReader
	file *os.File
	of   *reads
	name string
}

func (r *reads) begin(name string, file *os.File, length int64) *read {
	one := &read{io.LimitedReader{R: file, N: length}, file, r, name}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[string]map[*read]bool{}
	}
	if r.open[name] == nil {
		r.open[name] = map[*read]bool{}
	}
	r.open[name][one] = true
	return one
}

// end closes the open files of a blob, or of all blobs in a folder. Their next read fails.
func (r *reads) end(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, open := range r.open {
		if of != name && !strings.HasPrefix(of, name+"/") {
			continue
		}
		for one := range open {
			_ = one.file.Close()
		}
		delete(r.open, of)
	}
}

func (o *read) Read(p []byte) (int, error) {
	n, err := o.LimitedReader.Read(p)
	if errors.Is(err, os.ErrClosed) {
		err = blob.NotFound(err)
	}
	return n, err
}

// Close may be called more than once.
func (o *read) Close() error {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	if open := o.of.open[o.name]; open[o] {
		if delete(open, o); len(open) == 0 {
			delete(o.of.open, o.name)
		}
		return o.file.Close()
	}
	return nil
}

func (o *read) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, &o.LimitedReader) }
