// Command soak runs the one-machine server for some minutes under all kinds of load: jobs with their events,
// uploads, chats, batches, realtime sessions, reads among a million file records, and hostile requests. It checks
// from outside that every accepted job ends once, that a budget and the usage count it once, and that no job
// fails without a reason. It checks that results can be downloaded, that stored files are unchanged, and that
// each batch request has one response. It checks that memory, goroutines, files, processes, sessions and the size
// of the database return to their initial values, that no bytes without a record remain, and that reads do not
// become slower. It prints its measurements, and exits with 1 on a failure.
//
// Run it in the repository's folder: `go run ./bench/soak -minutes 10`. The load depends only on
// -seed. It needs ffmpeg, and Linux, because it watches the process in /proc.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cutroom/bench/filled"
	"cutroom/shared/platform/signals"
	"cutroom/shared/testkit/servertest"
)

const metricsKey = "soak-metrics-key"

// endTime is how long accepted jobs may take to end after the load. quietTime is how long the
// server may take to release the load's resources.
const endTime, quietTime = 11 * time.Minute, 90 * time.Second

func main() {
	minutes := flag.Float64("minutes", 10, "duration of the load")
	seed := flag.Uint64("seed", 1, "seed of the random load")
	files := flag.Int("files", 1_000_000, "number of file records before the start")
	flag.Parse()
	ctx, stop := signals.Context()
	err := soak(ctx, time.Duration(*minutes*float64(time.Minute)), *seed, *files)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// soak starts a server, puts load on it for the given time and checks the results.
func soak(ctx context.Context, length time.Duration, seed uint64, files int) error {
	folder, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	program, err := servertest.Build(ctx, folder)
	if err != nil {
		return err
	}
	inputs, err := newInputs(ctx, folder)
	if err != nil {
		return err
	}
	data := filepath.Join(folder, "data")
	if err := prepare(ctx, program, data, files); err != nil {
		return fmt.Errorf("prepare the records: %w", err)
	}
	server, err := program.Start(ctx, data, "CUTROOM_METRICS_KEY="+metricsKey,
		"CUTROOM_LOG_LEVEL=warn")
	if err != nil {
		return err
	}
	defer server.Kill()
	load := &load{server: server, inputs: inputs, ledger: newLedger(), reads: &readTimes{}, files: files}
	if err := load.watched(ctx, &watch{server: server, data: data}, length, seed); err != nil {
		return err
	}
	if code, err := server.Stop(ctx); err != nil || code != 0 {
		return fmt.Errorf("stop the server: exit code %d, %v", code, err)
	}
	if err := checkLeft(ctx, program, data); err != nil {
		return err
	}
	fmt.Println("All accepted jobs ended exactly once, and the server released all resources.")
	return nil
}

// prepare creates the initial records: many files for one account, and a job budget for another.
func prepare(ctx context.Context, program servertest.Program, data string, files int) error {
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	path, now := filepath.Join(data, database), time.Now()
	if err := filled.Key(ctx, path, manyKey, manyAccount, now); err != nil {
		return err
	}
	if err := filled.Write(ctx, path, filled.Files{Account: manyAccount, Count: files, Now: now}); err != nil {
		return err
	}
	set, err := program.Run(ctx, []string{"CUTROOM_DATA=" + data}, "budgets", "set", "--account", "dev",
		"--period", "month", "--unit", "jobs", "--limit", "1000000")
	if err == nil && set.ExitCode != 0 {
		err = fmt.Errorf("budgets set: %s", set.Stderr)
	}
	return err
}

// watched runs the load while watching the server's process. It returns an error if a job was lost,
// or if the server does not return to its initial state.
func (l *load) watched(ctx context.Context, watch *watch, length time.Duration, seed uint64) error {
	// Warm up first, because some allocations that are not leaks are made only by the first requests.
	l.run(ctx, 10*time.Second, seed+1)
	before, err := watch.calm(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Printf("before   %s\n", before)
	l.reads.reset()
	watching, end := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		watch.run(watching)
	}()
	l.run(ctx, length, seed)
	end()
	<-watched
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Print(l.ledger)
	fmt.Print(watch)
	if err := l.ledger.check(ctx, l.server); err != nil {
		return err
	}
	after, err := watch.calm(ctx, &before)
	if err != nil {
		return err
	}
	fmt.Printf("after    %s\n", after)
	return errors.Join(watch.flat(), watch.sized(before, after, l.ledger), l.reads.flat())
}
