package cost

import (
	"context"
	"os/exec"
	"path/filepath"

	"cutroom/shared/app/awscost"
)

// workMinute counts what each minute of an engine's work uses: recorded progress and
// extended leases. Two jobs differ only in the length of their clips; the difference of
// what they use is divided by the difference of their working times.
func (w *world) workMinute(ctx context.Context) (awscost.Quantities, error) {
	short := filepath.Join("testdata", "clip.mp4")
	long := filepath.Join(w.t.TempDir(), "long.mp4")
	// 15 times the clip is one minute.
	loop := exec.CommandContext(ctx, "ffmpeg", "-loglevel", "error", "-stream_loop", "14", "-i", short, "-c", "copy", long)
	if err := loop.Run(); err != nil {
		return nil, err
	}
	more, minutes := awscost.Quantities{}, 0.0
	for path, sign := range map[string]float64{long: 1, short: -1} {
		took, worked, err := w.worked(ctx, path)
		if err != nil {
			return nil, err
		}
		more.Add(took, sign)
		minutes += sign * worked
	}
	each := awscost.Quantities{}
	for _, item := range []awscost.Item{
		awscost.WriteUnit, awscost.ReadUnit, awscost.QueueRequest, awscost.FairQueueRequest,
	} {
		each[item] = max(0, more[item]) / minutes
	}
	each.Tidy()
	return each, nil
}

// worked returns what a worker uses while it edits a clip, and for how many minutes it
// works.
func (w *world) worked(ctx context.Context, path string) (awscost.Quantities, float64, error) {
	clip, err := sample(path)
	if err != nil {
		return nil, 0, err
	}
	t := w.newTally("work")
	jobs, err := t.function(ctx, "jobs", true)
	if err != nil {
		return nil, 0, err
	}
	k, err := w.newWork(ctx, t)
	if err != nil {
		return nil, 0, err
	}
	id, err := w.submit(ctx, jobs, clip)
	if err != nil {
		return nil, 0, err
	}
	if err := k.finish(ctx, id); err != nil {
		return nil, 0, err
	}
	if err := k.end(); err != nil {
		return nil, 0, err
	}
	j, err := w.jobs.Get(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	_, quantities, err := k.through.taken()
	return quantities, j.CompletedAt.Sub(j.StartedAt).Minutes(), err
}
