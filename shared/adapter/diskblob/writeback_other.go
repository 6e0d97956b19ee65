//go:build !linux

package diskblob

import "os"

// writeback is the number of bytes after which the disk is asked to start writing.
const writeback = 8 << 20

// startWriteback does nothing on systems without such a hint; the sync at the end
// writes everything.
func startWriteback(*os.File, int64, int64) {}
