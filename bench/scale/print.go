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
	"cutroom/shared/testkit/fakeaws"
)

// write prints what a simulation has found.
func write(out io.Writer, r *sim.Result) {
	how := "a whole day, every event simulated, with its failures"
	if r.Window > 0 {
		how = fmt.Sprintf("%v of the busiest time at the full rate, with its failures, and on until all jobs have ended", r.Window.Round(time.Second))
	}
	fmt.Fprintf(out, "## %s jobs a day: %s\n", number(float64(r.Jobs)), how)
	writeJobs(out, r)
	writeWaits(out, r)
	writeWorkers(out, r)
	writeFunctions(out, r)
	writePartitions(out, r)
	writeLimits(out, r)
}

func writeJobs(out io.Writer, r *sim.Result) {
	fmt.Fprintf(out, "\njobs: %d asked for, %d accepted, %d given up by their clients; refusals%s\n", r.Asked, r.Accepted,
		r.GaveUp, refusals(r.Refused))
	fmt.Fprintf(out, "ended: %d, of them completed %s; %d runs, of which %d found that another has the job\n",
		r.Ended, percent(float64(r.Completed), float64(r.Ended)), r.Runs, r.LostRuns)
	fmt.Fprintf(out, "lost: %d, completed twice: %d, completed and not billed: %d\n", r.Lost, r.Doubled, r.Unbilled)
	fmt.Fprintf(out, "completions: %d; uploads stored: %d, refused%s; pages listed: %d, refused%s\n", r.Completions, r.Uploads,
		refusals(r.FilesRefused), r.Listed, refusals(r.ListsRefused))
	fmt.Fprintf(out, "sessions: %d asked for, refused%s\n", r.Connects, refusals(r.SessionsRefused))
}

// refusals formats how many there were, by reason.
func refusals(by map[string]int) string {
	var text strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(&text, " %s %d,", reason, by[reason])
	}
	fmt.Fprintf(&text, " in all %d", sumOf(by))
	return text.String()
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
	line := func(name string) {
		waits := r.Waits[name]
		fmt.Fprintf(out, "%-14s %8d %10s %10s %10s %8.1f%%\n", name, len(waits), seconds(sim.Quantile(waits, 0.5)),
			seconds(sim.Quantile(waits, 0.9)), seconds(sim.Quantile(waits, 0.99)), 100*r.InTime[name])
	}
	for _, name := range shown(r) {
		line(name)
	}
	waiting, late := "", ""
	for _, name := range slices.Sorted(maps.Keys(r.InTime)) {
		if waiting == "" || sim.Quantile(r.Waits[name], 0.99) > sim.Quantile(r.Waits[waiting], 0.99) {
			waiting = name
		}
		if late == "" || r.InTime[name] < r.InTime[late] {
			late = name
		}
	}
	if waiting == "" {
		return
	}
	fmt.Fprintf(out, "of all %d accounts, the longest p99 and the smallest part in time:\n", len(r.InTime))
	line(waiting)
	line(late)
}

// Of a day, the minutes around each fault are printed, from a little before it until what it
// did should be over, and one in two hours.
const (
	beforeFault, afterFault = 2 * time.Minute, 15 * time.Minute
	seldom                  = 120
)

// near returns the fault that a minute is near to, if there is one.
func near(r *sim.Result, m sim.Minute) bool {
	return slices.ContainsFunc(r.Faults, func(f sim.Fault) bool {
		return m.At >= f.At-beforeFault && m.At <= f.At+afterFault ||
			m.At >= f.At+f.Length-beforeFault && m.At <= f.At+f.Length+afterFault
	})
}

// writeWorkers prints the failures and the workers around them, and the minute with the
// longest queue.
func writeWorkers(out io.Writer, r *sim.Result) {
	fmt.Fprintln(out)
	for _, f := range r.Faults {
		fmt.Fprintf(out, "%s %s", clock(f.At), f.What)
		if f.Length > 0 {
			fmt.Fprintf(out, ", for %v", f.Length.Round(100*time.Millisecond))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "\n%-8s %9s %9s %9s\n", "time", "workers", "desired", "waiting")
	worst := sim.Minute{}
	line := func(m sim.Minute) {
		fmt.Fprintf(out, "%s %9d %9d %9d\n", clock(m.At), m.Workers, m.Desired, m.Waiting)
	}
	for _, m := range r.Minutes {
		if m.Waiting > worst.Waiting {
			worst = m
		}
		if r.Window > 0 || int(m.At.Minutes())%seldom == 0 || near(r, m) {
			line(m)
		}
	}
	if worst.Waiting > 0 {
		fmt.Fprintln(out, "with the longest queue:")
		line(worst)
	}
}

func clock(at time.Duration) string {
	at = at.Round(time.Second)
	return fmt.Sprintf("%02d:%02d:%02d", int(at.Hours()), int(at.Minutes())%60, int(at.Seconds())%60)
}

// writeFunctions prints how many instances of each function served calls at once, and how
// many were started while it was counted: each of these begins with empty caches.
func writeFunctions(out io.Writer, r *sim.Result) {
	fmt.Fprint(out, "\nfunctions at once, and started:")
	for i, name := range slices.Sorted(maps.Keys(r.Peaks.Functions)) {
		if i > 0 {
			fmt.Fprint(out, ";")
		}
		fmt.Fprintf(out, " %s %d, %d", name, r.Peaks.Functions[name], r.Peaks.Made[name])
	}
	fmt.Fprintln(out)
}

// writePartitions prints, for each table and each index, its hottest partition, and how often
// it refused for want of capacity.
func writePartitions(out io.Writer, r *sim.Result) {
	fmt.Fprintf(out, "\n%-26s %-34s %14s %14s %9s %9s %9s\n", "table or index", "hottest partition", "reads of 3000",
		"writes of 1000", "share", "throttled", "conflicts")
	throttled, conflicts := 0, 0
	for _, name := range slices.Sorted(maps.Keys(r.Tables)) {
		// Those of a table are in order.
		i := slices.IndexFunc(r.Hottest, func(h fakeaws.Heat) bool { return h.Table == name })
		h := fakeaws.Heat{}
		if i >= 0 {
			h = r.Hottest[i]
		}
		fmt.Fprintf(out, "%-26s %-34.34s %14.0f %14.0f %8.1f%% %9d %9d\n", name, h.Key, h.Reads, h.Writes, 100*h.Share(),
			r.Tables[name].Throttled, r.Tables[name].Conflicts)
		throttled += r.Tables[name].Throttled
		conflicts += r.Tables[name].Conflicts
	}
	fmt.Fprintf(out, "attempts that were throttled: %d; that met a transaction: %d\n", throttled, conflicts)
}

func writeLimits(out io.Writer, r *sim.Result) {
	fmt.Fprintf(out, "\n%-58s %10s %10s %8s  %s\n", "limit", "most used", "quota", "share", "raised by")
	all := reachedBy(r)
	for i, l := range all {
		if i >= 5 && l.share() < 0.2 {
			break
		}
		fmt.Fprintf(out, "%-58s %10s %10s %7.0f%%  %s\n", l.name, number(l.value), number(l.quota), 100*l.share(),
			cmp.Or(l.raise, "nobody"))
	}
	writeFirst(out, "of the limits that AWS raises", first(all, true))
	writeFirst(out, "of those that nobody raises", first(all, false))
}

func writeFirst(out io.Writer, which string, l reached) {
	how := "none is met; the nearest is"
	if l.share() >= 1 {
		how = "the first that is met is"
	}
	fmt.Fprintf(out, "%s, %s %s, at %.0f%%\n", which, how, l.name, 100*l.share())
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
