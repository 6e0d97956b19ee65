package job_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

type fixedQueue struct {
	queue job.Queue
	own   job.Own
	fails error
	reads int
}

func (l *fixedQueue) Queue(context.Context, job.Lane) (job.Queue, error) {
	l.reads++
	return l.queue, l.fails
}

func (l *fixedQueue) Own(context.Context, job.Job) (job.Own, error) { return l.own, nil }

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func pendingJob() job.Job {
	return job.Job{
		Account: "acme", Model: "gen-2.5", Lane: job.VideoLane, Status: job.Pending,
		CreatedAt: noon, Deadline: noon.Add(job.MaxAge),
	}
}

func outlook(t *testing.T, l *fixedQueue, j job.Job, workers int) job.Outlook {
	t.Helper()
	service := job.NewService(job.Config{
		Queues: l, Now: func() time.Time { return noon }, Random: rand.Reader, Workers: map[job.Lane]int{job.VideoLane: workers},
	})
	forecast, known := service.Outlook(t.Context(), j)
	if !known {
		t.Fatal("the outlook is unknown")
	}
	return forecast
}

func seconds(s *job.Span) [2]float64 {
	if s == nil {
		return [2]float64{-1, -1}
	}
	return [2]float64{s.Earliest.Sub(noon).Seconds(), s.Latest.Sub(noon).Seconds()}
}

func TestOutlookFollowsQueue(t *testing.T) {
	tens := slices.Repeat([]job.RunTime{{Model: "gen-2.5", Took: 10 * time.Second}}, 5)
	for name, c := range map[string]struct {
		fixedQueue
		workers           int
		position          int
		start, completion [2]float64
	}{
		"a free worker": {
			fixedQueue{queue: job.Queue{Waiting: 1, Running: 1, ByAccount: map[string]int{"acme": 1}, Runs: tens}}, 2,
			1, [2]float64{0, 0}, [2]float64{7.5, 12.5},
		},
		"next in the queue": {
			fixedQueue{queue: job.Queue{Waiting: 1, Running: 1, ByAccount: map[string]int{"acme": 1}, Runs: tens}}, 1,
			1, [2]float64{0, 11}, [2]float64{7.5, 23.5},
		},
		"fourth of its account": {
			fixedQueue{queue: job.Queue{Waiting: 4, Running: 1, ByAccount: map[string]int{"acme": 4}, Runs: tens}, own: job.Own{Before: 3}},
			1, 4, [2]float64{27, 44}, [2]float64{34.5, 56.5},
		},
		"first of its account, behind fifty of another": {
			fixedQueue{queue: job.Queue{Waiting: 51, Running: 1, ByAccount: map[string]int{"acme": 1, "zoo": 50}, Runs: tens}}, 1,
			2, [2]float64{0, 22}, [2]float64{7.5, 34.5},
		},
		"second of its account, behind fifty of another and one": {
			fixedQueue{
				queue: job.Queue{Waiting: 53, Running: 1, ByAccount: map[string]int{"acme": 2, "zoo": 50, "hut": 1}, Runs: tens},
				own:   job.Own{Before: 1},
			}, 1, 5, [2]float64{27, 55}, [2]float64{34.5, 67.5},
		},
		"only one known run": {
			fixedQueue{queue: job.Queue{Waiting: 4, Running: 1, ByAccount: map[string]int{"acme": 4}, Runs: tens[:1]}, own: job.Own{Before: 3}},
			1, 4, [2]float64{15, 60}, [2]float64{22.5, 72.5},
		},
		"next of its account, with two accounts in spare slots": {
			fixedQueue{queue: job.Queue{Waiting: 1, Running: 3, ByAccount: map[string]int{"acme": 1}, Runs: tens}}, 1,
			1, [2]float64{0, 33}, [2]float64{7.5, 70.5},
		},
		"third of its account, with two accounts in spare slots": {
			fixedQueue{
				queue: job.Queue{Waiting: 9, Running: 3, ByAccount: map[string]int{"acme": 3, "zoo": 3, "hut": 3}, Runs: tens},
				own:   job.Own{Before: 2},
			}, 1, 9, [2]float64{54, 99}, [2]float64{61.5, 136.5},
		},
		"a queue that does not count accounts": {
			fixedQueue{queue: job.Queue{Waiting: 9, Running: 2, Runs: tens}, own: job.Own{Before: 3, After: 2}}, 8,
			7, [2]float64{0, 44}, [2]float64{7.5, 56.5},
		},
		"no worker is running": {
			fixedQueue{queue: job.Queue{Waiting: 3, ByAccount: map[string]int{"acme": 3}, Runs: tens}}, 2,
			1, [2]float64{-1, -1}, [2]float64{-1, -1},
		},
		"no job has completed yet": {
			fixedQueue{queue: job.Queue{Waiting: 1, Running: 1, ByAccount: map[string]int{"acme": 1}}}, 1,
			1, [2]float64{-1, -1}, [2]float64{-1, -1},
		},
		"the first run of a model": {
			fixedQueue{queue: job.Queue{Waiting: 1, Running: 1, Runs: []job.RunTime{{Model: "gen-image-2", Took: 10 * time.Second}}}}, 1,
			1, [2]float64{0, 15}, [2]float64{-1, -1},
		},
	} {
		got := outlook(t, &c.fixedQueue, pendingJob(), c.workers)
		if got.Position != c.position || seconds(got.Start) != c.start || seconds(got.Completion) != c.completion {
			t.Errorf("%s: position %d, start %v, completion %v; want %d, %v, %v", name, got.Position,
				seconds(got.Start), seconds(got.Completion), c.position, c.start, c.completion)
		}
	}
}

// The engine's estimate takes precedence over run times of other clips. No forecast is later than the deadline.
func TestOutlookUsesEngineEstimateUpToDeadline(t *testing.T) {
	j := pendingJob()
	j.Estimate = 100 * time.Second
	forecast := outlook(t, &fixedQueue{queue: job.Queue{
		Waiting: 50, Running: 1, ByAccount: map[string]int{"acme": 50},
		Runs: slices.Repeat([]job.RunTime{{Model: "gen-2.5", Took: 20 * time.Second}}, 5),
	}, own: job.Own{Before: 26}}, j, 1)
	if got := seconds(forecast.Completion); got != [2]float64{468 + 75, 600} {
		t.Errorf("completion %v", got)
	}
}

func TestOutlooksAreCached(t *testing.T) {
	now := noon
	l := &fixedQueue{queue: job.Queue{Waiting: 1}}
	service := job.NewService(job.Config{Queues: l, Now: func() time.Time { return now }, Random: rand.Reader})
	for range 10 {
		if _, known := service.Outlook(t.Context(), pendingJob()); !known {
			t.Fatal("the outlook is unknown")
		}
		now = now.Add(time.Second / 2)
	}
	if l.reads != 3 {
		t.Errorf("the queue was read %d times in 5 s, want 3", l.reads)
	}
	l.fails, now = errors.New("gone"), now.Add(time.Minute)
	if _, known := service.Outlook(t.Context(), pendingJob()); known {
		t.Error("the outlook is known although the queue cannot be read")
	}
	ended := pendingJob()
	ended.Status = job.Completed
	if _, known := service.Outlook(t.Context(), ended); known {
		t.Error("a job that has ended has an outlook")
	}
}
