package job_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

// lined is a line that does not change.
type lined struct {
	line  job.Line
	own   job.Own
	fails error
	reads int
}

func (l *lined) Line(context.Context, job.Lane) (job.Line, error) {
	l.reads++
	return l.line, l.fails
}

func (l *lined) Own(context.Context, job.Job) (job.Own, error) { return l.own, nil }

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func pendingJob() job.Job {
	return job.Job{
		Account: "acme", Model: "gen-2.5", Lane: job.VideoLane, Status: job.Pending,
		CreatedAt: noon, Deadline: noon.Add(job.MaxAge),
	}
}

func outlook(t *testing.T, l *lined, j job.Job, workers int) job.Outlook {
	t.Helper()
	service := job.NewService(job.Config{
		Lines: l, Now: func() time.Time { return noon }, Random: rand.Reader, Workers: map[job.Lane]int{job.VideoLane: workers},
	})
	told, known := service.Outlook(t.Context(), j)
	if !known {
		t.Fatal("nothing is known")
	}
	return told
}

// seconds returns a span as seconds from noon on.
func seconds(s *job.Span) [2]float64 {
	if s == nil {
		return [2]float64{-1, -1}
	}
	return [2]float64{s.Earliest.Sub(noon).Seconds(), s.Latest.Sub(noon).Seconds()}
}

func TestOutlook(t *testing.T) {
	tens := []job.RunTime{{"gen-2.5", 10 * time.Second}, {"gen-2.5", 10 * time.Second}}
	for name, c := range map[string]struct {
		lined
		workers           int
		position          int
		start, completion [2]float64
	}{
		"a free worker": {
			lined{line: job.Line{Waiting: 1, Running: 1, ByAccount: map[string]int{"acme": 1}, Runs: tens}}, 2,
			1, [2]float64{0, 0}, [2]float64{7.5, 12.5},
		},
		"next of one": {
			lined{line: job.Line{Waiting: 1, Running: 1, ByAccount: map[string]int{"acme": 1}, Runs: tens}}, 1,
			1, [2]float64{0, 11}, [2]float64{7.5, 23.5},
		},
		"fourth of its account": {
			lined{line: job.Line{Waiting: 4, Running: 1, ByAccount: map[string]int{"acme": 4}, Runs: tens}, own: job.Own{Before: 3}},
			1, 4, [2]float64{27, 44}, [2]float64{34.5, 56.5},
		},
		"first of its account, behind fifty of another": {
			lined{line: job.Line{Waiting: 51, Running: 1, ByAccount: map[string]int{"acme": 1, "zoo": 50}, Runs: tens}}, 1,
			2, [2]float64{0, 22}, [2]float64{7.5, 34.5},
		},
		"second of its account, behind fifty of another and one": {
			lined{
				line: job.Line{Waiting: 53, Running: 1, ByAccount: map[string]int{"acme": 2, "zoo": 50, "hut": 1}, Runs: tens},
				own:  job.Own{Before: 1},
			}, 1, 5, [2]float64{27, 55}, [2]float64{34.5, 67.5},
		},
		"a queue that knows no accounts": {
			lined{line: job.Line{Waiting: 9, Running: 2, Runs: tens}, own: job.Own{Before: 3, After: 2}}, 8,
			7, [2]float64{0, 44}, [2]float64{7.5, 56.5},
		},
		"nobody works": {
			lined{line: job.Line{Waiting: 3, ByAccount: map[string]int{"acme": 3}, Runs: tens}}, 2,
			1, [2]float64{-1, -1}, [2]float64{-1, -1},
		},
		"nothing was done yet": {
			lined{line: job.Line{Waiting: 1, Running: 1, ByAccount: map[string]int{"acme": 1}}}, 1,
			1, [2]float64{-1, -1}, [2]float64{-1, -1},
		},
		"the first run of a model": {
			lined{line: job.Line{Waiting: 1, Running: 1, Runs: []job.RunTime{{"gen-image-2", 10 * time.Second}}}}, 1,
			1, [2]float64{0, 11}, [2]float64{-1, -1},
		},
	} {
		got := outlook(t, &c.lined, pendingJob(), c.workers)
		if got.Position != c.position || seconds(got.Start) != c.start || seconds(got.Completion) != c.completion {
			t.Errorf("%s: position %d, start %v, completion %v; want %d, %v, %v", name, got.Position,
				seconds(got.Start), seconds(got.Completion), c.position, c.start, c.completion)
		}
	}
}

// An engine's own estimate counts more than the runs of other clips, and no estimate is later than the
// deadline.
func TestOutlookByTheEngineWithinTheDeadline(t *testing.T) {
	j := pendingJob()
	j.Estimate = 100 * time.Second
	told := outlook(t, &lined{line: job.Line{
		Waiting: 50, Running: 1, ByAccount: map[string]int{"acme": 50}, Runs: []job.RunTime{{"gen-2.5", 20 * time.Second}},
	}, own: job.Own{Before: 26}}, j, 1)
	if got := seconds(told.Completion); got != [2]float64{468 + 75, 600} {
		t.Errorf("completion %v", got)
	}
}

func TestOutlooksReadTheLineSeldom(t *testing.T) {
	now := noon
	l := &lined{line: job.Line{Waiting: 1}}
	service := job.NewService(job.Config{Lines: l, Now: func() time.Time { return now }, Random: rand.Reader})
	for range 10 {
		if _, known := service.Outlook(t.Context(), pendingJob()); !known {
			t.Fatal("nothing is known")
		}
		now = now.Add(time.Second / 2)
	}
	if l.reads != 3 {
		t.Errorf("in 5 s the line was read %d times", l.reads)
	}
	l.fails, now = errors.New("gone"), now.Add(time.Minute)
	if _, known := service.Outlook(t.Context(), pendingJob()); known {
		t.Error("something is known of a line that cannot be read")
	}
	ended := pendingJob()
	ended.Status = job.Completed
	if _, known := service.Outlook(t.Context(), ended); known {
		t.Error("something is expected of a job that has ended")
	}
}
