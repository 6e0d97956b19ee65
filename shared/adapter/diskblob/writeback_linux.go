package diskblob

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeback is the number of bytes after which writing to disk should start.
const writeback = 8 << 20

// startWriteback asks the system to start writing a range to disk. It ignores failures, because the
// final sync writes everything.
func startWriteback(file *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(file.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}
