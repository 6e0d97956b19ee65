package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"cutroom/shared/domain/fault"
)

func TestShortageIsRecognized(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("store: %w", &fs.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}), true},
		{syscall.ENOMEM, true},
		{syscall.EROFS, true},
		{syscall.ENOENT, false},
		{errors.New("too many open files"), false},
		{nil, false},
	} {
		if got := fault.IsShortage(test.err); got != test.want {
			t.Errorf("IsShortage(%v) is %v", test.err, got)
		}
	}
}
