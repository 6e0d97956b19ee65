package fence

import (
	"runtime"
	"testing"

	"cutroom/shared/platform/fence/launcher"
)

// TestOwnProcess: the launcher finds the one place of a filter at which the number of its
// process belongs, and takes no other for it.
func TestOwnProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no seccomp")
	}
	filter, err := callFilter()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, instruction := range filter {
		if uint32(instruction) == launcher.OwnProcess {
			found++
		}
	}
	if found != 1 {
		t.Errorf("the number of the process belongs at %d places of %d", found, len(filter))
	}
}
