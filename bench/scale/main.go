// Command scale shows what the service does from a thousand to a hundred million jobs a day,
// and which limit it meets first at each size. It runs the service's own domain and its
// adapters of AWS over simulated time, with services of AWS in memory that count what they
// are asked for (packages cloud and sim). docs/scale.md says what it found.
//
// Run it in the repository's folder: `go run ./bench/scale`. What happens follows from -seed.
// Sizes of up to -whole jobs a day are simulated event by event for a whole day with its
// failures. Of larger ones the busiest part of the day is simulated at the full rate, and
// what grows with the number of jobs is multiplied up to a day; the output says which.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"cutroom/bench/scale/sim"
)

func main() {
	seed := flag.Uint64("seed", 1, "what load and failures are drawn from")
	sizes := flag.String("sizes", "1e3,1e4,1e5,1e6,1e7,1e8", "jobs a day")
	whole := flag.Int("whole", 10_000, "the most jobs a day of which a whole day is simulated")
	flag.Parse()
	debug.SetGCPercent(garbage)
	if err := run(*seed, *sizes, *whole); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// run simulates the sizes and prints what it finds.
func run(seed uint64, sizes string, whole int) error {
	for text := range strings.SplitSeq(sizes, ",") {
		jobs, err := strconv.ParseFloat(text, 64)
		if err != nil || jobs < 100 || jobs > 1e9 {
			return fmt.Errorf("the size %q is no number from 100 to 1e9", text)
		}
		begun := time.Now()
		result, err := sim.Run(configOf(seed, int(jobs), whole))
		if err != nil {
			return err
		}
		write(os.Stdout, result)
		fmt.Printf("\n(%.0f s)\n\n", time.Since(begun).Seconds())
	}
	return nil
}

// windowJobs is about how many jobs the busiest part of a day has that is simulated, and
// shortest and longest how long it is. After leastWarmUp as many jobs are under way as end.
const (
	windowJobs        = 10_000
	shortest, longest = 3 * time.Second, 20 * time.Minute
	leastWarmUp       = 30 * time.Second
)

// garbage is by how many percent of what is in use memory grows before it is collected. The
// simulated tables only grow, so that the usual 100 would spend a third of the time on them.
const garbage = 400

// configOf returns the simulation of a size.
func configOf(seed uint64, jobs, whole int) sim.Config {
	c := sim.Config{Seed: seed, Jobs: jobs, Faults: sim.AllFaults()}
	if jobs > whole {
		c.Window = min(max(time.Duration(windowJobs/sim.PeakRate(jobs)*float64(time.Second)), shortest), longest)
		c.WarmUp = min(max(2*c.Window, leastWarmUp), time.Minute)
	}
	return c
}
