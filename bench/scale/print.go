package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"cutroom/bench/scale/sim"
	"cutroom/shared/app/awscost"
)

// write prints what a simulation has found.
func write(out io.Writer, r *sim.Result) {
	how := "a whole day, every event simulated, with its failures"
	if r.Window > 0 {
		how = fmt.Sprintf("%v of the busiest time at the full rate; a day's sums are multiplied up", r.Window.Round(time.Second))
	}
	fmt.Fprintf(out, "## %s jobs a day: %s\n", number(float64(r.Jobs)), how)
	writeJobs(out, r)
	writeWaits(out, r)
	writeWorkers(out, r)
	writePartitions(out, r)
	writeLimits(out, r)
	writeMoney(out, r)
}

func writeJobs(out io.Writer, r *sim.Result) {
	fmt.Fprintf(out, "\njobs: %d asked for, %d accepted, %d given up by their clients; refusals", r.Asked, r.Accepted, r.GaveUp)
	for _, reason := range slices.Sorted(maps.Keys(r.Refused)) {
		fmt.Fprintf(out, " %s %d,", reason, r.Refused[reason])
	}
	fmt.Fprintf(out, " in all %d\n", sumOf(r.Refused))
	fmt.Fprintf(out, "ended: %d, of them completed %s; %d runs, of which %d found that another has the job\n",
		r.Ended, percent(float64(r.Completed), float64(r.Ended)), r.Runs, r.LostRuns)
	if r.Window == 0 {
		fmt.Fprintf(out, "lost: %d, completed twice: %d\n", r.Lost, r.Doubled)
	}
}

// shown are the accounts whose waits are shown: large, middling and small.
func shown(r *sim.Result) []string {
	names := slices.Collect(maps.Keys(r.Waits))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(r.Waits[b]), len(r.Waits[a])), strings.Compare(a, b))
	})
	if len(names) <= 4 {
		return names
	}
	return []string{names[0], names[1], names[len(names)/4], names[len(names)/2]}
}

func writeWaits(out io.Writer, r *sim.Result) {
	fmt.Fprintf(out, "\n%-14s %8s %10s %10s %10s %9s\n", "account", "jobs", "wait p50", "p90", "p99", "in time")
	for _, name := range shown(r) {
		waits := r.Waits[name]
		fmt.Fprintf(out, "%-14s %8d %10s %10s %10s %8.1f%%\n", name, len(waits), seconds(sim.Quantile(waits, 0.5)),
			seconds(sim.Quantile(waits, 0.9)), seconds(sim.Quantile(waits, 0.99)), 100*r.InTime[name])
	}
}

// writeWorkers prints the state at the minutes of a day that tell most: one in two hours,
// and that with the longest queue.
func writeWorkers(out io.Writer, r *sim.Result) {
	fmt.Fprintf(out, "\n%-8s %9s %9s %9s %9s\n", "minute", "workers", "desired", "waiting", "in flight")
	worst := sim.Minute{}
	line := func(m sim.Minute) {
		fmt.Fprintf(out, "%02d:%02d    %9d %9d %9d %9d\n", int(m.At.Hours()), int(m.At.Minutes())%60, m.Workers, m.Desired,
			m.Waiting, m.InFlight)
	}
	for _, m := range r.Minutes {
		if m.Waiting > worst.Waiting {
			worst = m
		}
		if r.Window > 0 || int(m.At.Minutes())%120 == 0 {
			line(m)
		}
	}
	if worst.Waiting > 0 {
		fmt.Fprintln(out, "with the longest queue:")
		line(worst)
	}
}

func writePartitions(out io.Writer, r *sim.Result) {
	fmt.Fprintf(out, "\n%-22s %-36s %8s %8s %12s\n", "table", "hottest partition of a kind", "reads/s", "writes/s", "of its limit")
	for i, h := range r.Hottest {
		if i >= 12 || h.Share() < 0.001 {
			break
		}
		fmt.Fprintf(out, "%-22s %-36.36s %8.0f %8.0f %11.1f%%\n", h.Table, h.Key, h.Reads, h.Writes, 100*h.Share())
	}
	throttled := 0
	for _, t := range r.Tables {
		throttled += t.Throttled
	}
	fmt.Fprintf(out, "calls that were throttled: %d\n", throttled)
}

func writeLimits(out io.Writer, r *sim.Result) {
	fmt.Fprintf(out, "\n%-58s %10s %10s %8s  %s\n", "limit", "most used", "quota", "share", "raised by")
	for i, l := range reachedBy(r) {
		if i >= 5 && l.share() < 0.2 {
			break
		}
		fmt.Fprintf(out, "%-58s %10s %10s %7.0f%%  %s\n", l.name, number(l.value), number(l.quota), 100*l.share(),
			cmp.Or(l.raise, "nobody"))
	}
	if first := reachedBy(r)[0]; first.share() >= 1 {
		fmt.Fprintf(out, "the limit that is met first: %s\n", first.name)
	} else {
		fmt.Fprintf(out, "no limit is met; the nearest: %s\n", first.name)
	}
}

// writeMoney prints what a day costs by the parts of AWS.
func writeMoney(out io.Writer, r *sim.Result) {
	times := 1.0
	if r.Window > 0 {
		times = float64(r.Jobs) / float64(max(r.Asked, 1))
	}
	parts := map[string]float64{}
	total := 0.0
	for _, item := range slices.Sorted(maps.Keys(r.Used)) { // sums of floats depend on their order
		n := r.Used[item]
		service, _, _ := strings.Cut(string(item), ":")
		dollars := times * awscost.Quantities{item: n}.Dollars()
		parts[service] += dollars
		total += dollars
	}
	names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(parts[b], parts[a]), strings.Compare(a, b))
	})
	fmt.Fprintf(out, "\ndollars a day, at list price, without transfer, storage and GPUs: %.2f, which is %.5f a job\n", total,
		total/float64(r.Jobs))
	for _, name := range names {
		fmt.Fprintf(out, "  %-24s %12.2f\n", name, parts[name])
	}
}

func sumOf(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func percent(part, whole float64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100*part/whole)
}

// number formats a count with the digits that matter.
func number(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.4gM", n/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.0fk", n/1e3)
	case n == float64(int64(n)):
		return fmt.Sprintf("%d", int64(n))
	}
	return fmt.Sprintf("%.2f", n)
}
