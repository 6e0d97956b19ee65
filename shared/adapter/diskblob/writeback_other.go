//go:build !linux

package diskblob

import "os"

// writeback is after how many bytes the disk is told to begin writing.
const writeback = 8 << 20

// startWriteback does nothing where the system takes no such hint; the sync at
// the end writes all.
func startWriteback(*os.File, int64, int64) {}
