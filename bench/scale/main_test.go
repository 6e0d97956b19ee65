package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestSameSeedPrintsTheSameReport(t *testing.T) {
	t.Parallel()
	report := func(seed uint64) string {
		var out bytes.Buffer
		if err := run(&out, io.Discard, seed, "200"); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	first := report(3)
	if second := report(3); first != second {
		t.Errorf("one seed printed two reports:\n%s\n%s", first, second)
	}
	if !strings.Contains(first, "lost: 0, completed twice: 0, completed but not billed: 0") {
		t.Errorf("the report does not contain the number of lost jobs:\n%s", first)
	}
	if report(4) == first {
		t.Error("another seed printed the same")
	}
}
