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
	"errors"
	"flag"
	"fmt"
	"io"
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
	if err := run(os.Stdout, os.Stderr, *seed, *sizes, *whole); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// run simulates the sizes and writes what it finds. What goes to out follows from the seed
// alone; how long each took goes to progress.
//
// Errors: a size that cannot be read; a simulation that lost a job or completed one twice,
// once all sizes are written.
func run(out, progress io.Writer, seed uint64, sizes string, whole int) error {
	var wrong []error
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
		write(out, result)
		fmt.Fprintln(out)
		fmt.Fprintf(progress, "(%s jobs: %.0f s)\n", text, time.Since(begun).Seconds())
		wrong = append(wrong, exactness(result))
	}
	return errors.Join(wrong...)
}

// exactness reports what a service must never do and did.
//
// Errors: a job was lost, or completed or billed twice.
func exactness(r *sim.Result) error {
	if r.Lost == 0 && r.Doubled == 0 && r.Unbilled == 0 {
		return nil
	}
	return fmt.Errorf("%s jobs a day: %d were lost, %d completed twice, and %d completed that are not billed",
		number(float64(r.Jobs)), r.Lost, r.Doubled, r.Unbilled)
}

// windowJobs is about how many jobs the busiest part of a day has that is simulated, and
// shortest and longest how long it is: the campaign that is the busiest time ends after the
// longest. After leastWarmUp as many jobs are under way as end.
const (
	windowJobs        = 5000
	shortest, longest = 3 * time.Second, 10 * time.Minute
	leastWarmUp       = 20 * time.Second
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
