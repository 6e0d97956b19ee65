package diskblob

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeback is after how many bytes the disk is told to begin writing.
const writeback = 8 << 20

// startWriteback asks the system to begin writing a range to the disk. It is a
// hint: whether it can is of no interest, as the sync at the end is what counts.
func startWriteback(file *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(file.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}
