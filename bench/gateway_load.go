package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// flowStreams streams are open concurrently. Each gets a chunk at intervals of flowEvery. flowBar is the maximum
	// time between two chunks, measured at the quantile flowQuantile.
	flowStreams  = 500
	flowQuantile = 0.99
	flowBar      = 50 * time.Millisecond
	// translatedStreams is the number of streams used to measure the translation of a chunk.
	translatedStreams = 20
	translationBar    = 20 * time.Microsecond
	// largeCallers is the number of clients that send large prompts concurrently, in largeWaves waves. The memory
	// after the last wave may be at most largeGrowth times the memory after the second. The first wave is ignored,
	// because it fills the heap.
	largeCallers = 256
	largeWaves   = 6
	largeGrowth  = 1.1
)

// gatewayFlow reads many concurrent streams whose chunks arrive at a constant rate.
func (b *bench) gatewayFlow(ctx context.Context, targets []target) error {
	stalls := map[string]time.Duration{}
	for _, to := range targets {
		gaps := make([][]time.Duration, flowStreams)
		running, ctx := errgroup.WithContext(ctx)
		for i := range gaps {
			running.Go(func() (err error) {
				gaps[i], err = readFlow(ctx, to.address)
				return err
			})
		}
		if err := running.Wait(); err != nil {
			return fmt.Errorf("%s: %w", to.name, err)
		}
		var all []time.Duration
		for _, each := range gaps {
			all = append(all, each...)
		}
		stalls[to.name] = quantile(all, flowQuantile)
	}
	b.table.add(row{
		what:     fmt.Sprintf("gateway, %d streams of 100 chunks/s, p99 between chunks", flowStreams),
		measured: short(stalls["gateway"]), floor: short(stalls["nginx"]) + " nginx",
		ratio: ratio(stalls["gateway"], stalls["nginx"]), bar: short(flowBar), verdict: verdictOf(stalls["gateway"] <= flowBar),
	})
	return nil
}

func readFlow(ctx context.Context, address string) (gaps []time.Duration, err error) {
	w, err := dialWire(ctx, address)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.conn.SetDeadline(time.Now().Add(2 * wireTime)); err != nil {
		return nil, err
	}
	if err := w.open("flow"); err != nil {
		return nil, err
	}
	for before := time.Now(); ; {
		n, err := w.chunk()
		if err != nil || n == 0 {
			return gaps, err
		}
		now := time.Now()
		gaps = append(gaps, now.Sub(before))
		before = now
	}
}

// gatewayTranslation compares the CPU time for translating a chunk with the CPU time for forwarding it.
func (b *bench) gatewayTranslation(ctx context.Context, to target) error {
	each := map[string]time.Duration{}
	for _, kind := range []string{"burst", "messages", "responses"} {
		before, err := processorTime(to.pid)
		if err != nil {
			return err
		}
		w, err := dialWire(ctx, to.address)
		if err != nil {
			return err
		}
		for range translatedStreams {
			if _, err := w.call(kind); err != nil {
				w.close()
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
		w.close()
		after, err := processorTime(to.pid)
		if err != nil {
			return err
		}
		each[kind] = (after - before) / (translatedStreams * burstChunks)
	}
	for _, dialect := range []string{"messages", "responses"} {
		added := each[dialect] - each["burst"]
		b.table.add(row{
			what:     "gateway, a chunk as " + dialect + ", added CPU time",
			measured: fmt.Sprintf("%.1f us", float64(added)/1e3), floor: fmt.Sprintf("%.1f us passed on", float64(each["burst"])/1e3),
			ratio: "-", bar: micro(translationBar), verdict: verdictOf(added <= translationBar),
		})
	}
	return nil
}

// gatewayLarge sends requests with large prompts in waves. All requests of a wave stay open at the same time.
func (b *bench) gatewayLarge(ctx context.Context, upstream *modelServer, to target) error {
	var peaks []int64
	for range largeWaves {
		release := upstream.hold()
		running, ctx := errgroup.WithContext(ctx)
		sent := make(chan struct{}, largeCallers)
		for range largeCallers {
			running.Go(func() error {
				w, err := dialWire(ctx, to.address)
				if err != nil {
					return err
				}
				defer w.close()
				if _, err := w.conn.Write(w.requests["large"]); err != nil {
					return err
				}
				sent <- struct{}{}
				length, err := w.head()
				if err != nil {
					return err
				}
				_, err = w.reader.Discard(length)
				return err
			})
		}
		err := awaitHeld(ctx, upstream, sent)
		held, readErr := memory(to.pid, "VmRSS")
		release()
		if err := errors.Join(err, readErr, running.Wait()); err != nil {
			return err
		}
		peaks = append(peaks, held)
	}
	second, last := peaks[1], peaks[len(peaks)-1]
	b.table.add(row{
		what:     fmt.Sprintf("gateway, memory with %d concurrent prompts of 200 KB, the %dth time", largeCallers, largeWaves),
		measured: mebibytes(last), floor: mebibytes(second) + " the 2nd time",
		ratio: fmt.Sprintf("%.2f x", float64(last)/float64(second)), bar: fmt.Sprintf("%.1f x", largeGrowth),
		verdict: verdictOf(float64(last) <= largeGrowth*float64(second)),
	})
	return nil
}

// awaitHeld waits until the model server is holding every call of a wave.
func awaitHeld(ctx context.Context, upstream *modelServer, sent <-chan struct{}) error {
	for range largeCallers {
		select {
		case <-sent:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for until := time.Now().Add(wireTime); upstream.waiting.Load() < largeCallers; time.Sleep(time.Millisecond) {
		if time.Now().After(until) || ctx.Err() != nil {
			return errors.New("the model server did not get all requests")
		}
	}
	return nil
}
