package diskblob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"cutroom/shared/domain/blob"
)

const (
	// bufferSize is large enough to make the overhead of system calls negligible.
	bufferSize = 256 << 10
	// buffersAhead is the maximum number of buffers that wait for the disk while the next one is
	// being read. Two more are in use.
	buffersAhead = 4
)

// Put reads and writes concurrently, so it takes as long as the slower of the two.
func (s *Store) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	path, err := s.path(name)
	if err != nil {
		return 0, err
	}
	// The file is read-only once it is closed, because other programs get links to it.
	file, err := os.OpenFile(s.arrival(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o400)
	if err != nil {
		return 0, fileError("put", err)
	}
	size, err := s.fill(ctx, file, r)
	if err != nil {
		return 0, discard(file, err)
	}
	if err := s.publish(file, path); err != nil {
		return 0, discard(file, fileError("put", err))
	}
	return size, nil
}

func (s *Store) publish(file *os.File, path string) error {
	if err := file.Sync(); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return s.rename(file.Name(), path)
}

// discard removes a file that cannot be published and returns the cause.
func discard(file *os.File, cause error) error {
	file.Close()
	if err := os.Remove(file.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(cause, err)
	}
	return cause
}

func (s *Store) fill(ctx context.Context, file *os.File, r io.Reader) (int64, error) {
	buffer := s.buffers.Get().(*[bufferSize]byte)
	n, readErr := blob.ReadFull(ctx, r, buffer[:])
	if readErr != nil {
		// Most blobs fit into one buffer and need no second goroutine.
		defer s.buffers.Put(buffer)
		if readErr != io.EOF {
			return 0, readErr
		}
		_, err := file.Write(buffer[:n])
		return int64(n), fileError("put", err)
	}

	writer := s.startWriter(file)
	total := int64(0)
	for {
		total += int64(n)
		if !writer.write(buffer, n) || readErr != nil {
			break
		}
		buffer = s.buffers.Get().(*[bufferSize]byte)
		n, readErr = blob.ReadFull(ctx, r, buffer[:])
	}
	if err := writer.finish(); err != nil {
		return 0, fileError("put", err)
	}
	if readErr != nil && readErr != io.EOF {
		return 0, readErr
	}
	return total, nil
}

// Probe writes a file as Put does, and deletes it.
func (s *Store) Probe(context.Context) error {
	file, err := os.OpenFile(s.arrival(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o400)
	if err != nil {
		return fileError("probe", err)
	}
	if _, err = file.Write(make([]byte, 4096)); err == nil {
		err = file.Sync()
	}
	return fileError("probe", errors.Join(err, file.Close(), os.Remove(file.Name())))
}
