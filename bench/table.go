package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

type table struct{ rows []row }

type row struct {
	what, measured, floor, ratio, bar string
	verdict                           verdict
}

type verdict string

const (
	met    verdict = "met"
	missed verdict = "MISSED"
	noBar  verdict = "-"
)

func verdictOf(within bool) verdict {
	if within {
		return met
	}
	return missed
}

func (t *table) add(r row) { t.rows = append(t.rows, r) }

func (t *table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tMEASURED\tFLOOR\tRATIO\tBAR\tVERDICT")
	for _, r := range t.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.measured, r.floor, r.ratio, r.bar, r.verdict)
	}
	return w.Flush()
}

// quantile returns the value below which the fraction q of the sorted durations lies.
func quantile(durations []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func median(durations []time.Duration) time.Duration { return quantile(durations, 0.5) }

func ratio(measured, floor time.Duration) string {
	return fmt.Sprintf("%.2f x", measured.Seconds()/floor.Seconds())
}

// short formats a duration with about three significant digits.
func short(d time.Duration) string {
	switch size := d.Abs(); {
	case size >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case size >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case size >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }
