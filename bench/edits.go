package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"cutroom/shared/engine/preview/look"
)

const (
	// editsSeconds is the length, in seconds, of the clip that is edited.
	editsSeconds = 2
	// The editsAgain slowest looks by elapsed time and the editsAgain slowest looks by CPU time are measured
	// editsRounds more times, alternating with the floor.
	editsAgain, editsRounds = 3, 5
	// editsBar is the slowest look's maximum time, as a multiple of the time without an edit.
	editsBar = 3.0
)

// ordinary lists edits without a look that keep the clip's length.
var ordinary = []string{
	"rotate 90 degrees", "crop to square", "blur", "denoise", "deflicker", "stabilize", "reverse", `write "SALE"`, "fade in and out",
}

type lookTime struct {
	name       string
	took, used time.Duration
}

// byClock and byUse sort by elapsed time and by CPU time, longest first.
func byClock(a, b lookTime) int { return cmp.Compare(b.took, a.took) }
func byUse(a, b lookTime) int   { return cmp.Compare(b.used, a.used) }

// edits makes the preview engine edit a 1280x720 clip with every look and the ordinary edits. The floor decodes and
// encodes the same clip without an edit, with more effort in the search for motion than the engine.
func (b *bench) edits(ctx context.Context) error {
	clip, err := b.largeClip(ctx)
	if err != nil {
		return err
	}
	e, err := newEdit(ctx, b.folder, clip, "watercolor")
	if err != nil {
		return err
	}
	defer e.close()
	var all []lookTime
	for _, name := range append(look.Names(), ordinary...) {
		one, err := e.by(ctx, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, one)
	}
	// The slowest look by elapsed time is not always the slowest by CPU time, because other load on the machine
	// affects CPU time less.
	again := map[string][]lookTime{}
	for _, order := range []func(a, b lookTime) int{byClock, byUse} {
		slices.SortFunc(all, order)
		for _, one := range all[:editsAgain] {
			again[one.name] = nil
		}
	}
	var floor []lookTime
	for range editsRounds {
		for name := range again {
			one, err := e.by(ctx, name)
			if err != nil {
				return err
			}
			again[name] = append(again[name], one)
		}
		one, err := b.transcode(ctx, clip)
		if err != nil {
			return err
		}
		floor = append(floor, one)
	}
	var slowest []lookTime
	for _, times := range again {
		slowest = append(slowest, middle(times))
	}
	b.reportEdits(all, slowest, middle(floor))
	return nil
}

// reportEdits reports the edits with all looks, highest CPU time first. Then it reports the repeated edits with the
// slowest looks, and the edits without a look.
func (b *bench) reportEdits(all, slowest []lookTime, floor lookTime) {
	for _, r := range []struct {
		what string
		look lookTime
		bar  bool
	}{
		{
			fmt.Sprintf("edit of %d s of 1280x720, slowest of %d looks and ordinary edits", editsSeconds, len(all)),
			slices.MinFunc(slowest, byClock), true,
		},
		{"  the look with the most CPU time", slices.MinFunc(slowest, byUse), false},
		{"  the median look", all[len(all)/2], false},
		{"  the fastest look", all[len(all)-1], false},
	} {
		one := row{
			what: r.what, measured: fmt.Sprintf("%s (%s)", short(r.look.took), r.look.name),
			floor: short(floor.took) + " decoded and encoded", ratio: ratio(r.look.took, floor.took), bar: "-", verdict: noBar,
		}
		if r.bar {
			one.bar = fmt.Sprintf("%.0f x", editsBar)
			one.verdict = verdictOf(r.look.took.Seconds() <= editsBar*floor.took.Seconds())
		}
		b.table.add(one)
		b.table.add(row{
			what: "    CPU time", measured: short(r.look.used), floor: short(floor.used),
			ratio: ratio(r.look.used, floor.used), bar: "-", verdict: noBar,
		})
	}
}

func middle(of []lookTime) lookTime {
	var took, used []time.Duration
	for _, one := range of {
		took, used = append(took, one.took), append(used, one.used)
	}
	return lookTime{of[0].name, median(took), median(used)}
}

func (e *edit) by(ctx context.Context, name string) (lookTime, error) {
	e.spec.Prompt = name
	return measureLook(name, func() error { return e.engine(ctx) })
}

func measureLook(name string, work func() error) (lookTime, error) {
	begun := time.Now()
	used, err := timed(work)
	return lookTime{name, time.Since(begun), used}, err
}

func (b *bench) largeClip(ctx context.Context) (string, error) {
	path := filepath.Join(b.folder, "large.mp4")
	return path, runFFmpeg(ctx, "-i", b.clip, "-t", fmt.Sprint(editsSeconds), "-vf", "scale=1280:720,fps=20",
		"-c:v", "libx264", "-c:a", "aac", path)
}

func (b *bench) transcode(ctx context.Context, clip string) (lookTime, error) {
	return measureLook("", func() error {
		return runFFmpeg(ctx, "-i", clip, "-c:v", "libx264", "-profile:v", "high", "-preset", "veryfast", "-crf", "20",
			"-threads", "4", "-g", "40", "-c:a", "aac", "-b:a", "160k", "-movflags", "+faststart",
			filepath.Join(b.folder, "transcoded.mp4"))
	})
}

func runFFmpeg(ctx context.Context, args ...string) error {
	var complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, "ffmpeg", append([]string{"-nostdin", "-v", "error", "-y"}, args...)...)
	cmd.Stderr = &complaints
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("ffmpeg: %w\n%s", err, &complaints)
	}
	return nil
}
