package clitest

import (
	"encoding/json"
	"strings"
	"testing"
)

// The sum of a month is printed by part, and as JSON.
func TestCost(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	text := sh.works("cost", "--jobs", "1e5", "--completions", "1e6")
	for _, part := range []string{"jobs", "workers", "completions", "fixed", "all", "at once, on average"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
	var sum struct {
		Total float64
		Parts []struct{ Dollars float64 }
	}
	if err := json.Unmarshal([]byte(sh.works("cost", "--jobs", "1e5", "--json")), &sum); err != nil {
		t.Fatal(err)
	}
	parts := 0.0
	for _, part := range sum.Parts {
		parts += part.Dollars
	}
	if sum.Total < 1 || parts < 0.99*sum.Total || parts > 1.01*sum.Total {
		t.Errorf("the parts cost $%f, all of them $%f", parts, sum.Total)
	}
	for _, bad := range []string{"-1", "NaN", "1e300", "many"} {
		if got := sh.run("cost", "--jobs="+bad); got.code == 0 || !strings.Contains(got.stderr, "--jobs") {
			t.Errorf("--jobs=%s: %+v", bad, got)
		}
	}
}
