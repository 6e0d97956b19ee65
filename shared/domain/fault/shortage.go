package fault

import (
	"errors"
	"slices"
	"syscall"
)

// shortages are what the system answers when it cannot give what a request needs.
var shortages = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EROFS}

// IsShortage reports whether err is the machine's own trouble: it has no file
// descriptor, memory or process left, or a disk that cannot be written. Nobody's
// request is to blame for that, and the same request may succeed later.
func IsShortage(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains(shortages, errno)
}
