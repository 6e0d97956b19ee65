package memorylimit_test

import (
	"math"
	"runtime/debug"
	"testing"

	"cutroom/shared/platform/memorylimit"
)

func TestHeapLimitIsBelowTheMachinesMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "1GiB")
	if memorylimit.Set(); debug.SetMemoryLimit(-1) != before {
		t.Error("the operator's limit is replaced")
	}
	t.Setenv("GOMEMLIMIT", "")
	memorylimit.Set()
	machine := memorylimit.OfMachine()
	if limit := debug.SetMemoryLimit(-1); machine == 0 || limit >= machine || limit == math.MaxInt64 {
		t.Errorf("the limit is %d of %d bytes", limit, machine)
	}
}
