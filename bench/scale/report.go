package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"cutroom/bench/scale/sim"
	"cutroom/shared/testkit/fakeaws"
)

// limit is an AWS quota or one of the service's limits, and the amount used.
type limit struct {
	name string
	used float64
	// quota is an account's default in us-east-1. raise says who can raise it, or is "-" if it is fixed.
	quota float64
	raise string
}

func (l limit) share() float64 { return l.used / l.quota }

func limitsOf(r *sim.Result) []limit {
	const quotas, support, fixed = "Service Quotas", "AWS Support", "-"
	var reads, writes float64
	for _, t := range r.Tables {
		reads, writes = max(reads, t.MostReads), max(writes, t.MostWrites)
	}
	var hot fakeaws.Heat
	for _, h := range r.Hottest {
		hot.Reads, hot.Writes = max(hot.Reads, h.Reads), max(hot.Writes, h.Writes)
		hot.Transactions = max(hot.Transactions, h.Transactions)
	}
	p, transactions := r.Peaks, float64(time.Second/fakeaws.TransactionTime)
	return []limit{
		{"Fargate: vCPUs on demand, 2 for each worker", float64(2 * p.Tasks), 6, quotas},
		{"ECS: tasks of one service", float64(p.Tasks), 5000, quotas},
		{"ECS: DescribeServices a second", float64(p.Describes.Most), 20, support},
		{"Lambda: concurrent executions", float64(p.Lambdas), 1000, quotas},
		{"API Gateway: requests a second", float64(p.Requests.Most), 10_000, quotas},
		{"Step Functions: executions started a second", float64(p.Starts.Most), 300, quotas},
		{"DynamoDB: read units of one table a second", reads, 40_000, quotas},
		{"DynamoDB: write units of one table a second", writes, 40_000, quotas},
		{"DynamoDB: read units of one partition a second", hot.Reads, fakeaws.PartitionReads, fixed},
		{"DynamoDB: write units of one partition a second", hot.Writes, fakeaws.PartitionWrites, fixed},
		{"DynamoDB: transactions on one item a second, of 10 ms", float64(hot.Transactions), transactions, fixed},
		{"Cutroom: open jobs of one account", float64(p.OpenJobs), sim.MostOpen, fixed},
	}
}

func write(out io.Writer, r *sim.Result) {
	part := "an entire day with failures"
	if r.Window > 0 {
		part = fmt.Sprintf("%v of the busiest time with failures", r.Window.Round(time.Second))
	}
	fmt.Fprintf(out, "## %s jobs a day: %s\n\n", number(float64(r.Jobs)), part)
	fmt.Fprintf(out, "jobs: %d requested, %d abandoned by their clients\n", r.Asked, r.GaveUp)
	fmt.Fprintf(out, "ended: %d, completed: %d (%.2f %%), runs: %d\n",
		r.Ended, r.Completed, 100*float64(r.Completed)/float64(max(r.Ended, 1)), r.Runs)
	fmt.Fprintf(out, "lost: %d, completed twice: %d, completed but not billed: %d\n", r.Lost, r.Doubled, r.Unbilled)
	for _, what := range slices.Sorted(maps.Keys(r.Done)) {
		fmt.Fprintf(out, "successful %s: %d\n", what, r.Done[what])
	}
	for _, what := range slices.Sorted(maps.Keys(r.Rejected)) {
		fmt.Fprintf(out, "rejected %s: %d\n", what, r.Rejected[what])
	}
	writeWaits(out, r)
	writePartitions(out, r)
	writeLimits(out, r)
}

// writeWaits prints how long jobs waited for their first run: over all jobs, for the largest
// account, and for the account that waited longest.
func writeWaits(out io.Writer, r *sim.Result) {
	var all []time.Duration
	largest, slowest := "", ""
	for _, name := range slices.Sorted(maps.Keys(r.Waits)) {
		all = append(all, r.Waits[name]...)
		if len(r.Waits[name]) > len(r.Waits[largest]) {
			largest = name
		}
		if sim.Quantile(r.Waits[name], 0.99) >= sim.Quantile(r.Waits[slowest], 0.99) {
			slowest = name
		}
	}
	slices.Sort(all)
	fmt.Fprintf(out, "\n%-34s %8s %9s %9s %9s\n", "wait for a worker", "jobs", "p50", "p90", "p99")
	for _, line := range []struct {
		what  string
		waits []time.Duration
	}{
		{"all accounts", all}, {"the largest, " + largest, r.Waits[largest]}, {"the slowest, " + slowest, r.Waits[slowest]},
	} {
		fmt.Fprintf(out, "%-34s %8d", line.what, len(line.waits))
		for _, q := range []float64{0.5, 0.9, 0.99} {
			fmt.Fprintf(out, " %7.1f s", sim.Quantile(line.waits, q).Seconds())
		}
		fmt.Fprintln(out)
	}
}

func writePartitions(out io.Writer, r *sim.Result) {
	fmt.Fprintf(out, "\n%-26s %-34s %6s %6s %6s %9s %9s\n", "table or index", "hottest partition", "reads", "writes",
		"share", "throttled", "conflicts")
	for _, name := range slices.Sorted(maps.Keys(r.Tables)) {
		h := fakeaws.Heat{}
		if i := slices.IndexFunc(r.Hottest, func(h fakeaws.Heat) bool { return h.Table == name }); i >= 0 {
			h = r.Hottest[i] // Hottest lists the busiest partition first
		}
		fmt.Fprintf(out, "%-26s %-34.34s %6.0f %6.0f %5.0f%% %9d %9d\n", name, h.Key, h.Reads, h.Writes, 100*h.Utilization(),
			r.Tables[name].Throttled, r.Tables[name].Conflicts)
	}
}

// writeLimits prints the limits, highest use first.
func writeLimits(out io.Writer, r *sim.Result) {
	all := limitsOf(r)
	slices.SortStableFunc(all, func(a, b limit) int { return cmp.Compare(b.share(), a.share()) })
	fmt.Fprintf(out, "\n%-54s %8s %8s %6s  %s\n", "limit", "used", "quota", "share", "raised by")
	for _, l := range all {
		fmt.Fprintf(out, "%-54s %8s %8s %5.0f%%  %s\n", l.name, number(l.used), number(l.quota), 100*l.share(), l.raise)
	}
	fmt.Fprintln(out)
}

func number(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.4gM", n/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.0fk", n/1e3)
	}
	return fmt.Sprintf("%.0f", n)
}
