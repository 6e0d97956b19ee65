//go:build unix

package vp8

import "golang.org/x/sys/unix"

func mapShared(fd, size int) ([]byte, error) {
	return unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func release(memory []byte) error { return unix.Munmap(memory) }
