package job

import (
	"context"
	"math"
	"sync"
	"time"
)

// Lines reads the queues that pending jobs wait in. A read costs at most a count in an index. The
// suite in jobtest specifies it; every adapter runs it.
type Lines interface {
	// Line returns the recent state of a lane's queue.
	Line(ctx context.Context, lane Lane) (Line, error)
	// Own counts the account's other pending jobs on the job's lane.
	Own(ctx context.Context, j Job) (Own, error)
}

// Line is the state of a lane's queue.
type Line struct {
	Waiting int
	// ByAccount divides Waiting by account. It is nil if the queue does not count by account. Then
	// the number of workers is only known from Running.
	ByAccount map[string]int
	// Running is how many jobs workers process.
	Running int
	// Runs are the runs of recently completed jobs, in no order.
	Runs []RunTime
}

type RunTime struct {
	// Model is the canonical id, or empty if unknown.
	Model string
	Took  time.Duration
}

// Own counts an account's pending jobs on a lane before and after one of them. If ByAccount is nil,
// some may already run.
type Own struct{ Before, After int }

// Span is a likely earliest and latest time.
type Span struct{ Earliest, Latest time.Time }

// Outlook is the forecast of a pending job (docs/contract/jobs.md#outlook).
type Outlook struct {
	// Position is about how many jobs are served until this one is, including itself: 1 is the
	// next. It may grow if others arrive, and fall because accounts take turns.
	Position int
	// Start and Completion are when its run starts and ends. They are nil if unknown.
	Start, Completion *Span
}

const (
	// lineFor is how long a service caches a queue.
	lineFor = 2 * time.Second
	// spread is a number of standard deviations: four of five run times of a normal distribution
	// are within it.
	spread = 1.28
	// margin widens known times by a fraction. estimateMargin does so for an engine's estimates and
	// for few runs.
	margin         = 0.1
	estimateMargin = 0.25
)

// lines caches the queues of a service's lanes.
type lines struct {
	mu    sync.Mutex
	known map[Lane]knownLine
}

type knownLine struct {
	line Line
	err  error
	at   time.Time
}

// Outlook returns the outlook of a pending job by its lane's queue within the last two seconds.
// known is false for any other job, or without Lines.
func (s *Service) Outlook(ctx context.Context, j Job) (Outlook, bool) {
	if s.config.Lines == nil || j.Status != Pending {
		return Outlook{}, false
	}
	line, err := s.line(ctx, j.Lane)
	if err != nil {
		return Outlook{}, false
	}
	own, err := s.config.Lines.Own(ctx, j)
	if err != nil {
		s.config.Logger.WarnContext(ctx, "cannot read an account's place in the queue", "error", err)
		return Outlook{}, false
	}
	return line.outlook(j, own, s.config.Workers[j.Lane], s.config.Now()), true
}

// line returns a lane's queue, at most lineFor old.
func (s *Service) line(ctx context.Context, lane Lane) (Line, error) {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	now := s.config.Now()
	known, ok := s.lines.known[lane]
	if ok && now.Sub(known.at).Abs() < lineFor {
		return known.line, known.err
	}
	known = knownLine{at: now}
	if known.line, known.err = s.config.Lines.Line(ctx, lane); known.err != nil {
		if ctx.Err() != nil {
			return Line{}, known.err // one caller has gone
		}
		s.config.Logger.WarnContext(ctx, "cannot read the queue of a lane", "lane", lane, "error", known.err)
	}
	if s.lines.known == nil {
		s.lines.known = map[Lane]knownLine{}
	}
	s.lines.known[lane] = known
	return known.line, known.err
}

// outlook returns the outlook of a pending job with a number of workers.
func (l Line) outlook(j Job, own Own, workers int, now time.Time) Outlook {
	least, most := l.ahead(j.Account, own)
	told := Outlook{Position: most + 1}
	if l.ByAccount == nil {
		workers = min(workers, l.Running)
	}
	// Without running jobs there may be no worker, and without past runs the time is unknown.
	if l.Running == 0 || workers == 0 || len(l.Runs) == 0 {
		return told
	}
	mean, deviation := meanOf(l.Runs)
	turns := func(ahead int) int { return max(0, ahead+1+l.Running-workers) }
	// A worker ends its job at any time from now to a whole run later.
	soonest, last := turns(least), turns(most)
	earliest := mean*float64(max(0, soonest-1)/workers)*(1-margin) -
		spread*deviation*math.Sqrt(float64(soonest))/float64(workers)
	latest := mean*float64((last+workers-1)/workers)*(1+margin) +
		spread*deviation*math.Sqrt(float64(last))/float64(workers)
	told.Start = spanOf(j, now, earliest, latest)
	if shortest, longest, known := l.takes(j); known {
		told.Completion = spanOf(j, now, max(0, earliest)+shortest, latest+longest)
	}
	return told
}

// ahead returns the least and the largest number of waiting jobs that are served before the
// account's job, if no others arrive: accounts take turns.
func (l Line) ahead(account string, own Own) (least, most int) {
	if l.ByAccount == nil {
		return max(0, own.Before-l.Running), max(own.Before, l.Waiting-1-own.After)
	}
	least, most = own.Before, own.Before
	for other, waiting := range l.ByAccount {
		if other != account {
			least += min(waiting, own.Before)
			most += min(waiting, own.Before+1)
		}
	}
	return least, most
}

// takes returns the run time of a job in seconds, by its engine's estimate or by runs of its model.
// known is false before the first run of a model.
func (l Line) takes(j Job) (shortest, longest float64, known bool) {
	shortest = math.Inf(1)
	if seconds := j.Estimate.Seconds(); seconds > 0 {
		shortest, longest = seconds, seconds
	} else {
		for _, run := range l.Runs {
			if run.Model == j.Model {
				shortest, longest = min(shortest, run.Took.Seconds()), max(longest, run.Took.Seconds())
			}
		}
	}
	return shortest * (1 - estimateMargin), longest * (1 + estimateMargin), !math.IsInf(shortest, 1)
}

// spanOf returns the span between two times from now, in seconds, limited by the job's deadline.
func spanOf(j Job, now time.Time, earliest, latest float64) *Span {
	at := func(seconds float64) time.Time {
		t := now.Add(time.Duration(max(0, min(seconds, MaxAge.Seconds())) * float64(time.Second)))
		if t.After(j.Deadline) {
			return j.Deadline
		}
		return t
	}
	return &Span{Earliest: at(earliest), Latest: at(max(earliest, latest))}
}

// meanOf returns the mean and the standard deviation of run times, in seconds.
func meanOf(runs []RunTime) (mean, deviation float64) {
	for _, run := range runs {
		mean += run.Took.Seconds() / float64(len(runs))
	}
	for _, run := range runs {
		deviation += (run.Took.Seconds() - mean) * (run.Took.Seconds() - mean) / float64(len(runs))
	}
	return mean, math.Sqrt(deviation)
}
