package diskblob

import (
	"golang.org/x/sys/unix"
)

// Room returns how many more bytes the disk may take if reserve bytes must stay free (0 means
// DefaultReserve). It is negative if less is free.
func (s *Store) Room(reserve int64) (int64, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.root, &disk); err != nil {
		return 0, fileError("ask for free space", err)
	}
	block := int64(disk.Bsize)
	if reserve == 0 {
		reserve = DefaultReserve(int64(disk.Blocks) * block)
	}
	return int64(disk.Bavail)*block - reserve, nil
}

// DefaultReserve returns how many bytes of a disk stay free of uploads by default: a fiftieth or 1
// GiB, whichever is more, but at most a tenth. Records and the results of accepted jobs need them.
func DefaultReserve(size int64) int64 { return min(max(size/50, 1<<30), size/10) }
