package diskblob

import (
	"golang.org/x/sys/unix"
)

// Room gives how many bytes may still be put on the disk when so many are kept
// free, 0 for DefaultReserve. It is less than 0 where less is free.
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

// DefaultReserve gives how much of a disk of the size, in bytes, is kept free of
// uploads when nothing is set: a fiftieth or 1 GiB, whichever is more, but no more
// than a tenth. The records, and the results of jobs that were accepted, need it.
func DefaultReserve(size int64) int64 { return min(max(size/50, 1<<30), size/10) }
