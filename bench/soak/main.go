// Command soak runs the one-machine server for some minutes under all kinds of load at once: jobs with
// their events, uploads, chats, batches, realtime sessions, reads among a million file records, and
// hostile requests. It checks from outside that every accepted job ends once and is counted once by a
// budget and the usage, and that no job fails without a reason. It checks that results can be
// downloaded, that stored files are unchanged, and that each call of a batch is answered once. It
// checks that memory, goroutines, files, processes, sessions and the size of the database return to
// their initial values, that no unknown bytes are left, and that reads stay as quick. It prints its
// measurements, and exits with 1 on a failure.
//
// Run it in the repository's folder: `go run ./bench/soak -minutes 10`. The load follows from -seed. It
// needs ffmpeg, and Linux, because it watches the process by /proc.
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

// metricsKey reads the server's metrics.
const metricsKey = "soak-metrics-key"

// endTime is how long accepted jobs may take to end after the load has ended, and quietTime how long
// the server may take to release the load's resources.
const endTime, quietTime = 11 * time.Minute, 90 * time.Second

func main() {
	minutes := flag.Float64("minutes", 10, "how long the load lasts")
	seed := flag.Uint64("seed", 1, "what the load is drawn from")
	files := flag.Int("files", 1_000_000, "how many records of files there are from before the start")
	flag.Parse()
	ctx, stop := signals.Context()
	err := soak(ctx, time.Duration(*minutes*float64(time.Minute)), *seed, *files)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// soak starts a server, loads it for the length and checks the results.
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
		return fmt.Errorf("the server's stop: exit code %d, %v", code, err)
	}
	if err := checkLeft(ctx, program, data); err != nil {
		return err
	}
	fmt.Println("Everything that was accepted has ended, once, and what was taken came back.")
	return nil
}

// prepare makes the initial records: many files of one account, and a budget of jobs of the other.
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

// watched runs the load while it watches the server's process. It fails if a job was lost, or if the
// server does not return to its initial state.
func (l *load) watched(ctx context.Context, watch *watch, length time.Duration, seed uint64) error {
	// What only the first requests allocate is not a leak.
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
