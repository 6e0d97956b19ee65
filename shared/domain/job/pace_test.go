package job_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

type knownRuns struct {
	runs []job.RunTime
	err  error
}

func (k knownRuns) RunTimes(context.Context, job.Lane) ([]job.RunTime, error) { return k.runs, k.err }

// paced simulates a client that polls a job while it waits and runs. after is the time from the
// job's end to the last read.
func paced(pace *job.Pace, j job.Job, waits, runs time.Duration) (reads int, after time.Duration) {
	created := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	j.CreatedAt = created
	started, ended := created.Add(waits), created.Add(waits+runs)
	now, last := created, job.Job{}
	for {
		now = now.Add(pace.Next(last, now))
		reads++
		if !now.Before(ended) {
			return reads, now.Sub(ended)
		}
		last = j
		last.Status = job.Pending
		if !now.Before(started) {
			last.Status, last.StartedAt = job.Processing, started
		}
	}
}

// A client that waits for a job of a known model reads it at most ten times: after acceptance, then twice at about
// 1.04 s (four fifths of the shortest run time). It then reads the job after every further tenth, up to 1.9 s (the
// longest run time). It learns of the end within a tenth of the run time. Half of the clients learn of it no later
// than without known run times.
func TestPaceUsesKnownRunTimes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	takes := func() time.Duration { return time.Duration(1300+random.IntN(600)) * time.Millisecond }
	var known []job.RunTime
	for range 20 {
		known = append(known, job.RunTime{Model: "image", Took: takes()})
	}
	known = append(known, job.RunTime{Model: "other", Took: time.Millisecond})
	service := job.NewService(job.Config{RunTimes: knownRuns{runs: known}})
	measure := func(what string, pace func() *job.Pace) (reads []int, after []time.Duration) {
		random = rand.New(rand.NewPCG(3, 4))
		for range 500 {
			waits, runs := time.Duration(10+random.IntN(100))*time.Millisecond, takes()
			n, late := paced(pace(), job.Job{Model: "image", Lane: job.ImageLane}, waits, runs)
			if late > runs/10 {
				t.Errorf("%s: the end of a run of %v was noticed after %v", what, runs, late)
			}
			reads, after = append(reads, n), append(after, late)
		}
		slices.Sort(reads)
		slices.Sort(after)
		return reads, after
	}
	blindReads, blindAfter := measure("unknown", func() *job.Pace { return new(job.Pace) })
	reads, after := measure("known", func() *job.Pace { return service.Pace(t.Context()) })
	const half, last = 250, 499
	t.Logf("reads %d to %d, then %d to %d", blindReads[0], blindReads[last], reads[0], reads[last])
	t.Logf("half of the ends within %v, all within %v, then %v and %v", blindAfter[half], blindAfter[last], after[half],
		after[last])
	if reads[last] > 10 || blindReads[0] < 3*reads[last] {
		t.Errorf("up to %d reads, from %d on without the model's times", reads[last], blindReads[0])
	}
	if after[half] > blindAfter[half] {
		t.Errorf("%v after the end, %v without the model's times", after[half], blindAfter[half])
	}
}

func TestPaceNoticesEarlyEnd(t *testing.T) {
	runs := slices.Repeat([]job.RunTime{{Model: "slow", Took: time.Minute}}, 5)
	few := runs[:2]
	for name, c := range map[string]struct {
		known    knownRuns
		estimate time.Duration
		runs     time.Duration
		after    time.Duration // upper limit
	}{
		"known from its runs":                     {knownRuns{runs: runs}, 0, 100 * time.Millisecond, 2 * time.Second},
		"known from its engine":                   {knownRuns{}, time.Minute, 100 * time.Millisecond, 2 * time.Second},
		"the engine estimates less than the runs": {knownRuns{runs: runs}, 50 * time.Millisecond, 100 * time.Millisecond, 20 * time.Millisecond},
		"two runs are too few":                    {knownRuns{runs: few}, 0, 100 * time.Millisecond, 20 * time.Millisecond},
		"runs cannot be read":                     {knownRuns{err: errors.New("throttled")}, 0, 100 * time.Millisecond, 20 * time.Millisecond},
		"a long run, noticed within a tenth":      {knownRuns{runs: runs}, 0, time.Minute, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			service := job.NewService(job.Config{RunTimes: c.known})
			_, after := paced(service.Pace(t.Context()), job.Job{Model: "slow", Estimate: c.estimate}, 0, c.runs)
			if after > c.after {
				t.Errorf("its end was noticed after %v, want at most %v", after, c.after)
			}
		})
	}
}
