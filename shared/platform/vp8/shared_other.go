//go:build unix && !linux

package vp8

import "os"

// The shared memory is an unlinked file.
func newShared(size int) (*os.File, []byte, error) {
	file, err := os.CreateTemp("", "cutroom-vp8-")
	if err != nil {
		return nil, nil, err
	}
	var memory []byte
	if err = os.Remove(file.Name()); err == nil {
		err = file.Truncate(int64(size))
	}
	if err == nil {
		memory, err = mapShared(int(file.Fd()), size)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, memory, nil
}
