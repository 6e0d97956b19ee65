// Command scale simulates the service in AWS at 1,000 to 10,000,000 jobs a day, and prints which
// limit each size reaches first. It runs the service's own domain code and AWS adapters in
// simulated time (packages sim and fakeaws). docs/scale.md describes the results.
//
// Run it in the repository's folder: `go run ./bench/scale`. All results depend only on -seed. Up to 10,000 jobs
// a day, it simulates an entire day with failures. For larger sizes it simulates a window at the busiest time.
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
	seed := flag.Uint64("seed", 1, "seed of load and failures")
	sizes := flag.String("sizes", "1e3,1e4,1e5,1e6,1e7", "jobs a day")
	flag.Parse()
	debug.SetGCPercent(400) // the default of 100 takes a third longer, because the simulated tables only grow
	if err := run(os.Stdout, os.Stderr, *seed, *sizes); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// run simulates the sizes. It writes the results to out, and each size's running time to progress. The results depend
// only on the seed.
//
// Errors: an invalid size; errors from exactness, after all sizes have been written.
func run(out, progress io.Writer, seed uint64, sizes string) error {
	var wrong []error
	for text := range strings.SplitSeq(sizes, ",") {
		jobs, err := strconv.ParseFloat(text, 64)
		if err != nil || jobs < 100 || jobs > mostJobs {
			return fmt.Errorf("invalid size %q: must be a number from 100 to %.0e", text, mostJobs)
		}
		begun := time.Now()
		result, err := sim.Run(configOf(seed, int(jobs)))
		if err != nil {
			return err
		}
		write(out, result)
		fmt.Fprintf(progress, "(%s jobs: %.0f s)\n", text, time.Since(begun).Seconds())
		wrong = append(wrong, exactness(result))
	}
	return errors.Join(wrong...)
}

// exactness returns an error if any job was lost, completed twice, or completed without being billed.
func exactness(r *sim.Result) error {
	if r.Lost == 0 && r.Doubled == 0 && r.Unbilled == 0 {
		return nil
	}
	return fmt.Errorf("%s jobs a day: %d were lost, %d completed twice, and %d completed but are not billed",
		number(float64(r.Jobs)), r.Lost, r.Doubled, r.Unbilled)
}

const (
	mostJobs = 1e7
	// whole is the largest number of jobs per day for which an entire day is simulated.
	whole = 10_000
	// A window is long enough for about windowJobs jobs, but never shorter than shortest or longer than longest. This
	// maximum keeps it within the campaign at the busiest time. After a warm-up of leastWarmUp, jobs end at the rate
	// at which they start.
	windowJobs        = 5000
	shortest, longest = 3 * time.Second, 10 * time.Minute
	leastWarmUp       = 20 * time.Second
)

func configOf(seed uint64, jobs int) sim.Config {
	c := sim.Config{Seed: seed, Jobs: jobs, Failures: true, Strays: 0.01}
	if jobs > whole {
		c.Window = min(max(time.Duration(windowJobs/sim.PeakRate(jobs)*float64(time.Second)), shortest), longest)
		c.WarmUp = min(max(2*c.Window, leastWarmUp), time.Minute)
	}
	return c
}
