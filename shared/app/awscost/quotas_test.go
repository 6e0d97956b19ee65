package awscost_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cutroom/shared/app/awscost"
)

// The table of docs/scale.md, whose figures are those of the simulation, agrees with what
// deploys and checks name.
func TestQuotasAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "scale.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, quota := range awscost.Quotas() {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(quota.Name) + `[^|]*\|(.*)\|$`).FindStringSubmatch(string(page))
		if row == nil {
			t.Errorf("the page has no row for %q", quota.Name)
			continue
		}
		cells := strings.Split(row[1], "|")
		number := func(cell int) float64 {
			t.Helper()
			first, _, _ := strings.Cut(strings.Trim(cells[cell], " *"), ";")
			n, err := strconv.ParseFloat(strings.ReplaceAll(first, ",", ""), 64)
			if err != nil {
				t.Errorf("%s: %q is no number", quota.Name, cells[cell])
			}
			return n
		}
		if got := number(0); got != quota.Default {
			t.Errorf("%s: the page says that an account begins with %g, the code %g", quota.Name, got, quota.Default)
		}
		const tenMillion = 3
		if got, want := number(tenMillion), quota.Needed(1e7); got > 1.1*want || got < 0.85*want {
			t.Errorf("%s: the page says %g for 10^7 jobs a day, the code %g", quota.Name, got, want)
		}
	}
}

func TestNeeded(t *testing.T) {
	quota := awscost.QuotaOf(awscost.LambdaConcurrency)
	for jobs, want := range map[float64]float64{0: 1, 1000: 1, 20_000: 15, 1_000_000: 720, 10_000_000: 7200, 1e8: 72_000} {
		if got := quota.Needed(jobs); got != want {
			t.Errorf("%g jobs a day need %g functions at once, want %g", jobs, got, want)
		}
	}
	const asks = "Lambda: concurrent executions: 7200 (an account begins with 1000)"
	if got := quota.Ask(1e7); got != asks {
		t.Errorf("%q, want %q", got, asks)
	}
	const begins = "DynamoDB: write units a second of a table that is new: 6400, of 4000: give the table a warm throughput"
	if got := awscost.QuotaOf(awscost.NewTableWrites).Ask(1e7); !strings.HasPrefix(got, begins) {
		t.Errorf("%q, want %q", got, begins)
	}
}

// A quota has a code by which it is read, or something to do about it.
func TestQuotasCanBeMended(t *testing.T) {
	for _, q := range awscost.Quotas() {
		coded := q.Service != "" && q.Code != "" && q.Title != ""
		if coded == (q.Mend != "") || !coded && q.Service+q.Code+q.Title != "" {
			t.Errorf("%+v", q)
		}
	}
}
