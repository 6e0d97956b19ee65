package fault

import (
	"errors"
	"slices"
	"syscall"
)

// shortages are the system's errors when it cannot provide what a request needs.
var shortages = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EROFS}

// IsShortage reports whether err is a shortage of the machine: no file descriptors,
// memory or processes are left, or the disk cannot be written. It is not the
// request's fault, and the same request may succeed later.
func IsShortage(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains(shortages, errno)
}
