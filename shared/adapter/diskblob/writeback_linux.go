package diskblob

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeback is the number of bytes after which the disk is asked to start writing.
const writeback = 8 << 20

// startWriteback asks the system to start writing a range to disk. It is a hint:
// failures do not matter, because the sync at the end is what counts.
func startWriteback(file *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(file.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}
