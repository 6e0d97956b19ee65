package diskblob

import "golang.org/x/sys/unix"

// Available returns how many bytes may still be stored if `reserve` bytes must stay free (0 means DefaultReserve). It
// is negative if fewer bytes are free, or if fewer than a fiftieth of the inodes are free.
func (s *Store) Available(reserve int64) (int64, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.root, &disk); err != nil {
		return 0, fileError("read the free space", err)
	}
	if disk.Files > 0 && disk.Ffree < disk.Files/inodeReserve {
		return -1, nil
	}
	block := int64(disk.Bsize)
	if reserve == 0 {
		reserve = DefaultReserve(int64(disk.Blocks) * block)
	}
	return int64(disk.Bavail)*block - reserve, nil
}

// inodeReserve keeps one in 50 inodes free, if the file system counts inodes. Btrfs reports 0.
const inodeReserve = 50

// DefaultReserve returns how many bytes uploads must leave free for records and for the results of accepted jobs:
// a fiftieth of the disk or 1 GiB, whichever is more, but at most a tenth of the disk.
func DefaultReserve(size int64) int64 { return min(max(size/50, 1<<30), size/10) }
