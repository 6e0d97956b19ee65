package fault

import (
	"errors"
	"slices"
	"syscall"
)

var shortages = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EROFS}

// IsShortage reports whether err means that the machine lacks file descriptors, memory or processes, or that its
// file system has become read-only. The request is not at fault and may succeed later.
func IsShortage(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains(shortages, errno)
}
