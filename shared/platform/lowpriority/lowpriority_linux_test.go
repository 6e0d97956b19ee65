package lowpriority_test

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"cutroom/shared/platform/lowpriority"
)

// TestRun: the function has the lowest priority, and nothing else has.
func TestRun(t *testing.T) {
	nice := func() int {
		value, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
		if err != nil {
			t.Error(err)
		}
		return 20 - value // as the system call returns it
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, within, started := nice(), 0, make(chan int)
	lowpriority.Run(func() {
		within = nice()
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			started <- nice()
		}()
		if value := <-started; value != before {
			t.Errorf("what it starts has the nice value %d, and had to have %d", value, before)
		}
	})
	if within != 19 || nice() != before {
		t.Errorf("it had the nice value %d, and others now have %d; before it was %d", within, nice(), before)
	}
}
