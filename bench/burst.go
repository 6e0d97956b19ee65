package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cutroom/shared/testkit/servertest"
)

const (
	burstJobs = 50
	// burstReaders read states during the burst, each this often.
	burstReaders   = 4
	burstReadEvery = 20 * time.Millisecond
)

// burst submits many jobs at once and reads their states meanwhile. Then the engine
// alone does the same edits, as many at once as the server, and states are read
// from the idle server.
func (b *bench) burst(ctx context.Context) error {
	path := filepath.Join(b.folder, "short.mp4")
	cut := exec.CommandContext(ctx, "ffmpeg", "-v", "error", "-y", "-i", b.clip, "-t", "0.25", "-c:v", "libx264", "-c:a",
		"aac", path)
	if out, err := cut.CombinedOutput(); err != nil {
		return fmt.Errorf("cut the sample clip: %w\n%s", err, out)
	}
	clip, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	server, stop, err := b.serve(ctx, "burst")
	if err != nil {
		return err
	}
	defer stop()
	client := server.Client()
	e, err := newEdit(ctx, b.folder, path, "a watercolor painting")
	if err != nil {
		return err
	}
	defer e.close()
	// One edit first, so that admission knows how long an edit takes.
	if err := editByService(ctx, client, servertest.File("data", "short.mp4", clip), e.prompt); err != nil {
		return err
	}

	begun := time.Now()
	accepted, refused, slowest, err := submitAtOnce(ctx, client, clip, e.prompt)
	if err != nil {
		return err
	}
	var lost int
	during, err := readStates(ctx, client, accepted, func(ctx context.Context) error {
		for _, id := range accepted {
			job, err := client.Await(ctx, id, nil)
			if err != nil {
				return err
			}
			if job.Status != "completed" {
				lost++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	took := time.Since(begun)
	idle, err := readStates(ctx, client, accepted, func(ctx context.Context) error {
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
		}
		return nil
	})
	if err != nil {
		return err
	}

	begun = time.Now()
	alone, running := errgroup.WithContext(ctx)
	alone.SetLimit(max(1, runtime.NumCPU()/2))
	for range accepted {
		alone.Go(func() error { return e.engine(running) })
	}
	if err := alone.Wait(); err != nil {
		return err
	}
	floor := time.Since(begun)

	b.table.add(row{
		what:     fmt.Sprintf("%d jobs at once", burstJobs),
		measured: fmt.Sprintf("%d accepted, %d refused, %d lost", len(accepted), refused, lost),
		floor:    "-", ratio: "-", bar: "none lost", verdict: verdictOf(lost == 0 && len(accepted)+refused == burstJobs),
	})
	b.table.add(row{
		what: "  the last one's answer", measured: short(slowest), floor: "-", ratio: "-", bar: "-", verdict: noBar,
	})
	b.table.add(row{
		what:     "  until all are completed",
		measured: fmt.Sprintf("%s, %.2f jobs/s", short(took), float64(len(accepted))/took.Seconds()),
		floor:    short(floor) + " engine alone",
		ratio:    ratio(took, floor), bar: "-", verdict: noBar,
	})
	for _, q := range []struct {
		name string
		part float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		b.table.add(row{
			what:     "  reading a state meanwhile, " + q.name,
			measured: short(quantile(during, q.part)),
			floor:    short(quantile(idle, q.part)) + " idle",
			ratio:    ratio(quantile(during, q.part), quantile(idle, q.part)), bar: "-", verdict: noBar,
		})
	}
	return nil
}

// submitAtOnce submits the jobs and returns the ids of the accepted ones, how many
// were refused by admission, and how long the last answer took.
func submitAtOnce(ctx context.Context, client *servertest.Client, clip []byte,
	prompt string) (accepted []string, refused int, slowest time.Duration, err error) {
	var mu sync.Mutex
	all, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for range burstJobs {
		all.Go(func() error {
			job, err := client.Submit(ctx, benchModel, servertest.Form{
				servertest.File("data", "short.mp4", clip), servertest.Text("prompt", prompt), servertest.Text("seed", "1")})
			mu.Lock()
			defer mu.Unlock()
			slowest = max(slowest, time.Since(begun))
			var refusal *servertest.Refusal
			switch {
			case err == nil:
				accepted = append(accepted, job.ID)
			case errors.As(err, &refusal) && refusal.Status == 429:
				refused++
			default:
				return err
			}
			return nil
		})
	}
	err = all.Wait()
	return accepted, refused, slowest, err
}

// readStates reads states of the jobs while meanwhile runs, and returns the time of
// every read.
func readStates(ctx context.Context, client *servertest.Client, ids []string,
	meanwhile func(context.Context) error) ([]time.Duration, error) {
	var mu sync.Mutex
	var took []time.Duration
	all, ctx := errgroup.WithContext(ctx)
	reading, end := context.WithCancel(ctx)
	defer end()
	for range burstReaders {
		all.Go(func() error {
			ticker := time.NewTicker(burstReadEvery)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
				case <-reading.Done():
					return nil
				}
				begun := time.Now()
				_, err := client.Job(ctx, ids[rand.IntN(len(ids))])
				if err != nil {
					return err
				}
				mu.Lock()
				took = append(took, time.Since(begun))
				mu.Unlock()
			}
		})
	}
	all.Go(func() error {
		defer end()
		return meanwhile(ctx)
	})
	if err := all.Wait(); err != nil {
		return nil, err
	}
	if len(took) == 0 {
		return nil, errors.New("no state was read")
	}
	return took, nil
}
