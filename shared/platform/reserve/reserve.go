// Package reserve reserves disk space in a file for writes that must succeed on a full disk,
// because even deleting needs space.
package reserve

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

type Reserve struct {
	path string
	size int64

	mu   sync.Mutex
	held bool
}

// Open uses an existing reserve, or creates and fills one. If the disk is too full, the reserve is
// not held, which is not an error.
func Open(path string, size int64) *Reserve {
	r := &Reserve{path: path, size: size}
	if info, err := os.Stat(path); err == nil && info.Size() == size {
		r.held = true
	}
	r.Restore()
	return r
}

func (r *Reserve) Held() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// Release frees the reserved space and reports whether any was held.
func (r *Reserve) Release() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held {
		return false
	}
	r.held = false
	return os.Truncate(r.path, 0) == nil
}

// ReleaseIfFull calls Release if the disk is almost full.
func (r *Reserve) ReleaseIfFull() bool {
	room, err := r.free()
	return err == nil && room < r.size/2 && r.Release()
}

// Restore reserves the space again if the disk has space to spare. It reports whether the reserve is held.
func (r *Reserve) Restore() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		return true
	}
	// Do not use all remaining space, because the next write would have to release it again.
	if free, err := r.free(); err == nil && free < r.size+r.size/2 {
		return false
	}
	r.held = r.fill() == nil
	if !r.held {
		_ = os.Truncate(r.path, 0)
	}
	return r.held
}

func (r *Reserve) free() (int64, error) {
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &disk); err != nil {
		return 0, err
	}
	return int64(disk.Bavail) * int64(disk.Bsize), nil
}

// fill makes sure that the disk actually stores the bytes.
func (r *Reserve) fill() error {
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	const piece = 64 << 10
	// Do not write zeros, which some file systems store as holes.
	bytes := make([]byte, piece)
	for i := range bytes {
		bytes[i] = byte(i*7 + 1)
	}
	for written := int64(0); written < r.size && err == nil; written += piece {
		_, err = file.Write(bytes[:min(piece, r.size-written)])
	}
	return errors.Join(err, file.Sync(), file.Close())
}
