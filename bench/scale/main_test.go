package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"cutroom/bench/scale/sim"
)

// The report of a whole day, with all its failures, follows from the seed byte for byte.
func TestSameSeedPrintsTheSame(t *testing.T) {
	t.Parallel()
	report := func(seed uint64) string {
		var out bytes.Buffer
		if err := run(&out, io.Discard, seed, "200", 10_000); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	first := report(3)
	if second := report(3); first != second {
		t.Errorf("one seed printed two reports:\n%s\n%s", first, second)
	}
	if !strings.Contains(first, "lost: 0, completed twice: 0") {
		t.Errorf("the report does not say what was lost:\n%s", first)
	}
	if report(4) == first {
		t.Error("another seed printed the same")
	}
}

// Whoever runs it in a script is told when jobs were lost or doubled.
func TestInexactnessIsAnError(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		result sim.Result
		wrong  bool
	}{
		"all well":        {sim.Result{Completed: 5}, false},
		"one lost":        {sim.Result{Lost: 1}, true},
		"one twice":       {sim.Result{Doubled: 1}, true},
		"one not billed":  {sim.Result{Unbilled: 1}, true},
		"one billed more": {sim.Result{Unbilled: -1}, true},
	} {
		if err := exactness(&c.result); (err != nil) != c.wrong {
			t.Errorf("%s: error %v", what, err)
		}
	}
}
