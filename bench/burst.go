package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cutroom/shared/platform/clock"
	"cutroom/shared/testkit/servertest"
)

const (
	burstJobs = 50
	// burstReaders is the number of clients that read job states during the burst. Each reads once per
	// burstReadEvery.
	burstReaders   = 4
	burstReadEvery = 20 * time.Millisecond
	// burstBar is the maximum time for all jobs, as a multiple of the engine's time. burstReadBar
	// is the maximum time of a read during the burst, as a multiple of a read from an idle server.
	burstBar, burstReadBar = 1.05, 3.0
)

// burst submits many jobs together and reads their states while they run. Then it reads states from the idle
// server. Finally the engine does the same edits without the server, with the same parallelism, while states are
// read from the idle server at the same rate. So the reads cost both measurements the same CPU time.
func (b *bench) burst(ctx context.Context) error {
	path, clip, err := b.shortClip(ctx)
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
	// Run one edit first, so that the admission check knows how long an edit takes.
	if err := editByService(ctx, client, servertest.File("data", "short.mp4", clip), e.prompt); err != nil {
		return err
	}

	accepted, f, err := measureBurst(ctx, server, clip, e.prompt)
	if err != nil {
		return err
	}
	if err := measureAlone(ctx, server, e, accepted, &f); err != nil {
		return err
	}
	b.reportBurst(f)
	return nil
}

// measureBurst submits the jobs and reads their states until all have ended, and then for two more
// seconds while the server is idle. It returns the accepted jobs.
func measureBurst(ctx context.Context, server *servertest.Server, clip []byte,
	prompt string) (accepted []string, f burstFigures, err error) {
	client := server.Client()
	own, children, err := processorTimes(server.PID())
	if err != nil {
		return nil, f, err
	}
	begun := time.Now()
	accepted, rejected, slowest, err := submitAtOnce(ctx, client, clip, prompt)
	if err != nil {
		return nil, f, err
	}
	f.accepted, f.rejected, f.slowest = len(accepted), rejected, slowest
	f.during, err = readStates(ctx, client, accepted, func(ctx context.Context) error {
		for _, id := range accepted {
			job, err := awaitByEvents(ctx, client, id)
			if err != nil {
				return err
			}
			if job.Status != "completed" {
				f.lost++
			}
		}
		return nil
	})
	if err != nil {
		return accepted, f, err
	}
	f.took = time.Since(begun)
	// Wait for the last thumbnails, because they are part of the jobs' work.
	used, err := settledTime(ctx, server.PID())
	if err != nil {
		return accepted, f, err
	}
	f.used = used - own - children
	reading, err := timed(func() (err error) {
		f.idle, err = readStates(ctx, client, accepted, func(ctx context.Context) error {
			clock.Wait(ctx, 2*time.Second)
			return nil
		})
		return err
	})
	if err == nil {
		f.readCost = reading / time.Duration(len(f.idle))
	}
	return accepted, f, err
}

// measureAlone makes the engine perform as many edits as there are jobs, while states are read as in the burst. Its
// CPU time and measureBurst's both include the server's time for the reads and exclude this process's time.
func measureAlone(ctx context.Context, server *servertest.Server, e *edit, jobs []string, f *burstFigures) error {
	own, children, err := processorTimes(server.PID())
	if err != nil {
		return err
	}
	var reads []time.Duration
	used, err := timed(func() (err error) {
		reads, err = readStates(ctx, server.Client(), jobs, func(ctx context.Context) (err error) {
			f.floor, err = engineAlone(ctx, e, len(jobs))
			return err
		})
		return err
	})
	if err != nil {
		return err
	}
	ownAfter, childrenAfter, err := processorTimes(server.PID())
	f.usedAlone = used - time.Duration(len(reads))*f.readCost + ownAfter + childrenAfter - own - children
	return err
}

type burstFigures struct {
	accepted, rejected, lost int
	// slowest is the time until the last submission got its response. took is the time until all jobs were completed.
	// floor is the engine's time for the same edits. States are read during both measurements.
	slowest, took, floor time.Duration
	// used is the CPU time of the server and its child processes; usedAlone is the CPU time of the
	// engine and the idle server. readCost is this process's CPU time for one read.
	used, usedAlone, readCost time.Duration
	during, idle              []time.Duration
}

func (b *bench) shortClip(ctx context.Context) (path string, clip []byte, err error) {
	path = filepath.Join(b.folder, "short.mp4")
	if err := runFFmpeg(ctx, "-i", b.clip, "-t", "0.25", "-c:v", "libx264", "-c:a", "aac", path); err != nil {
		return "", nil, fmt.Errorf("cut the sample clip: %w", err)
	}
	clip, err = os.ReadFile(path)
	return path, clip, err
}

// engineAlone performs an edit n times with the server's parallelism.
func engineAlone(ctx context.Context, e *edit, n int) (time.Duration, error) {
	begun := time.Now()
	alone, running := errgroup.WithContext(ctx)
	alone.SetLimit(max(1, runtime.NumCPU()/2))
	for range n {
		alone.Go(func() error { return e.engine(running) })
	}
	err := alone.Wait()
	return time.Since(begun), err
}

func (b *bench) reportBurst(f burstFigures) {
	b.table.add(row{
		what:     fmt.Sprintf("%d concurrent jobs", burstJobs),
		measured: fmt.Sprintf("%d accepted, %d rejected, %d lost", f.accepted, f.rejected, f.lost),
		floor:    "-", ratio: "-", bar: "none lost", verdict: verdictOf(f.lost == 0 && f.accepted+f.rejected == burstJobs),
	})
	b.table.add(row{
		what: "  the last response", measured: short(f.slowest), floor: "-", ratio: "-", bar: "-", verdict: noBar,
	})
	b.table.add(row{
		what:     "  until all are completed",
		measured: fmt.Sprintf("%s, %.2f jobs/s", short(f.took), float64(f.accepted)/f.took.Seconds()),
		floor:    short(f.floor) + " engine alone",
		ratio:    ratio(f.took, f.floor), bar: fmt.Sprintf("%.2f x", burstBar),
		verdict: verdictOf(f.took.Seconds() <= burstBar*f.floor.Seconds()),
	})
	// On a busy machine, CPU time is more reliable than elapsed time.
	b.table.add(row{
		what:     "  CPU time of the server and its programs",
		measured: short(f.used), floor: short(f.usedAlone) + " engine alone",
		ratio: ratio(f.used, f.usedAlone), bar: "-", verdict: noBar,
	})
	median50, idle50 := median(f.during), median(f.idle)
	b.table.add(row{
		what: "  a read of a state during the burst, p50", measured: short(median50), floor: short(idle50) + " idle",
		ratio: ratio(median50, idle50), bar: "-", verdict: noBar,
	})
	last, lastIdle := quantile(f.during, 0.99), quantile(f.idle, 0.99)
	b.table.add(row{
		what: "  p99", measured: short(last), floor: short(lastIdle) + " idle", ratio: ratio(last, lastIdle),
		bar: fmt.Sprintf("%.0f x", burstReadBar), verdict: verdictOf(last.Seconds() <= burstReadBar*lastIdle.Seconds()),
	})
}

// settledTime returns the CPU time of a server and its child processes once it no longer grows.
func settledTime(ctx context.Context, pid int) (time.Duration, error) {
	for last := time.Duration(-1); ; {
		own, now, err := processorTimes(pid)
		if err != nil || now == last {
			return own + now, err
		}
		last = now
		if !clock.Wait(ctx, time.Second) {
			return 0, ctx.Err()
		}
	}
}

// submitAtOnce submits the jobs together. It returns the ids of the accepted jobs, the number of
// rejected jobs, and the time until the last response.
func submitAtOnce(ctx context.Context, client *servertest.Client, clip []byte,
	prompt string) (accepted []string, rejected int, slowest time.Duration, err error) {
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
			var failure *servertest.StatusError
			switch {
			case err == nil:
				accepted = append(accepted, job.ID)
			case errors.As(err, &failure) && failure.Status == 429:
				rejected++
			default:
				return err
			}
			return nil
		})
	}
	err = all.Wait()
	return accepted, rejected, slowest, err
}

// readStates reads the jobs' states while work runs, and returns the duration of every read.
func readStates(ctx context.Context, client *servertest.Client, ids []string,
	work func(context.Context) error) ([]time.Duration, error) {
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
		return work(ctx)
	})
	if err := all.Wait(); err != nil {
		return nil, err
	}
	if len(took) == 0 {
		return nil, errors.New("no state was read")
	}
	return took, nil
}
