// Command soak runs the one-machine server for some minutes with everything at once: jobs
// with their events, uploads, chats, realtime sessions, and hostile requests. From
// outside it checks that every accepted job ends once, that completed results can be
// downloaded, and that memory, goroutines, files and processes return to what they were.
// It prints what it saw, and exits with 1 if something is wrong.
//
// Run it in the repository's folder: `go run ./bench/soak -minutes 10`. What is sent
// follows from -seed. It needs Linux, for a process is watched by /proc, and ffmpeg.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/platform/signals"
	"cutroom/shared/testkit/servertest"
)

// metricsKey reads the server's metrics.
const metricsKey = "soak-metrics-key"

// endTime is how long accepted jobs may take to end after the load has ended, and
// quietTime how long the server may take to release what the load used.
const endTime, quietTime = 11 * time.Minute, 90 * time.Second

func main() {
	minutes := flag.Float64("minutes", 10, "how long the load lasts")
	seed := flag.Uint64("seed", 1, "what the load is drawn from")
	flag.Parse()
	ctx, stop := signals.Context()
	err := soak(ctx, time.Duration(*minutes*float64(time.Minute)), *seed)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// soak starts a server, loads it for the length and checks what it saw.
func soak(ctx context.Context, length time.Duration, seed uint64) error {
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
	server, err := program.Start(ctx, filepath.Join(folder, "data"), "CUTROOM_METRICS_KEY="+metricsKey,
		"CUTROOM_LOG_LEVEL=warn")
	if err != nil {
		return err
	}
	defer server.Kill()
	load := &load{server: server, inputs: inputs, ledger: newLedger()}
	if err := load.watched(ctx, length, seed); err != nil {
		return err
	}
	if code, err := server.Stop(ctx); err != nil || code != 0 {
		return fmt.Errorf("the server's stop: exit code %d, %v", code, err)
	}
	fmt.Println("Everything that was accepted has ended, once, and what was taken came back.")
	return nil
}

// watched runs the load while the server's process is watched. It fails if a job was
// lost, or if the server is not afterwards what it was before.
func (l *load) watched(ctx context.Context, length time.Duration, seed uint64) error {
	// What only the first requests allocate is not a leak.
	l.run(ctx, 10*time.Second, seed+1)
	watch := &watch{server: l.server}
	before, err := watch.calm(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Printf("before   %s\n", before)
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
	return watch.flat()
}
