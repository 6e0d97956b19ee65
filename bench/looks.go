package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/frame"
	"cutroom/shared/engine/preview/look"
)

const (
	looksTime = 500 * time.Millisecond
	// framesBar is the minimum number of frames per second that one core must edit.
	framesBar = 40
	// stackedBar is the minimum frame rate for two looks combined. It is checked for the stackedLooks slowest looks.
	stackedBar, stackedLooks = 25, 5
)

type lookRate struct {
	name   string
	frames float64
}

// looks makes the realtime engine edit a frame with every look, on one core.
func (b *bench) looks(ctx context.Context, picture *engine.Picture) error {
	var rates []lookRate
	live := frame.New(time.Now, rand.Uint32)
	for _, name := range look.Names() {
		edited, err := editFor(ctx, live, name, picture)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		rates = append(rates, lookRate{name, edited})
	}
	slices.SortFunc(rates, func(a, b lookRate) int { return cmp.Compare(a.frames, b.frames) })
	add := func(what string, r lookRate, bar string, verdict verdict) {
		b.table.add(row{what: what, measured: fmt.Sprintf("%.0f frames/s (%s)", r.frames, r.name), floor: "-", ratio: "-",
			bar: bar, verdict: verdict})
	}
	add(fmt.Sprintf("pictures of 640x360 on one core, slowest of %d looks", len(rates)), rates[0],
		fmt.Sprintf("%d frames/s", framesBar), verdictOf(rates[0].frames >= framesBar))
	add("  the median look", rates[len(rates)/2], "-", noBar)
	add("  the fastest look", rates[len(rates)-1], "-", noBar)
	stacked, err := slowestPair(ctx, live, rates[:stackedLooks], picture)
	if err != nil {
		return err
	}
	add("  slowest of two combined looks", stacked, fmt.Sprintf("%d frames/s", stackedBar),
		verdictOf(stacked.frames >= stackedBar))
	return nil
}

func slowestPair(ctx context.Context, live *frame.Engine, of []lookRate, picture *engine.Picture) (lookRate, error) {
	slowest := lookRate{frames: math.Inf(1)}
	for i, first := range of {
		for _, second := range of[i+1:] {
			prompt := first.name + ", " + second.name
			frames, err := editFor(ctx, live, prompt, picture)
			if err != nil {
				return lookRate{}, fmt.Errorf("%s: %w", prompt, err)
			}
			if frames < slowest.frames {
				slowest = lookRate{prompt, frames}
			}
		}
	}
	return slowest, nil
}

// editFor edits frames with a look for a while and returns the frame rate, based on the median time per frame.
func editFor(ctx context.Context, live *frame.Engine, name string, picture *engine.Picture) (float64, error) {
	editor, err := live.Open(ctx, &catalog.Model{Kind: catalog.Edit})
	if err != nil {
		return 0, err
	}
	defer editor.Close()
	if _, err := editor.SetPrompt(ctx, name); err != nil {
		return 0, err
	}
	// Do not measure the first frame, which waits until the look has been prepared.
	if _, err := editor.Edit(ctx, picture); err != nil {
		return 0, err
	}
	var took []time.Duration
	for begun := time.Now(); time.Since(begun) < looksTime; {
		edit := time.Now()
		if _, err := editor.Edit(ctx, picture); err != nil {
			return 0, err
		}
		took = append(took, time.Since(edit))
	}
	return 1 / median(took).Seconds(), nil
}
