package capacity_test

import (
	"testing"

	"cutroom/bench/capacity"
)

func TestUnits(t *testing.T) {
	for number, want := range map[string]int{"0": 1, "7": 2, "-7": 3, "1024": 3, "1000": 2, "0.25": 2} {
		if got := capacity.Number(number); got != want {
			t.Errorf("the number %s has %d bytes, want %d", number, got, want)
		}
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"a read of nothing", capacity.Reads(0, true), 1},
		{"a read of nothing that may be late", capacity.Reads(0, false), 0.5},
		{"a read of a byte more than a unit", capacity.Reads(4097, true), 2},
		{"a write of nothing", capacity.Writes(0), 1},
		{"a write of a unit", capacity.Writes(1024), 1},
		{"a write of a byte more", capacity.Writes(1025), 2},
	} {
		if c.got != c.want {
			t.Errorf("%s is %v, want %v", c.what, c.got, c.want)
		}
	}
}
