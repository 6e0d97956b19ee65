package job

import (
	"context"
	"math"
	"sync"
	"time"
)

// Lines tells what pending jobs wait for. No read of it grows with the queue by more than
// a count in an index. Its behaviour is specified here and verified by the suite in
// jobtest, which every adapter runs.
type Lines interface {
	// Line returns the line of a lane as it is about now.
	Line(ctx context.Context, lane Lane) (Line, error)
	// Own returns what else of its account is on the job's lane. The account's limit is that
	// of Store.Accept.
	Own(ctx context.Context, j Job, limit int) (Own, error)
}

// Line is what waits and what is processed on a lane.
type Line struct {
	// Waiting is how many jobs wait, of all accounts.
	Waiting int
	// ByAccount is how many of them are those of each account. It is nil where the queue
	// does not tell; the number of workers is not known there either, but by the jobs that
	// they process.
	ByAccount map[string]int
	// Running is how many jobs workers have.
	Running int
	// Runs are the runs of the jobs that completed last, in no order.
	Runs []RunTime
}

// RunTime is how long the run of a job took.
type RunTime struct {
	// Model is the canonical id, empty if it was not recorded.
	Model string
	Took  time.Duration
}

// Own is how many pending jobs an account has on a lane before and after one of them. Where
// the line does not tell about accounts, they may be in work already.
type Own struct{ Before, After int }

// Span is a time that lies between two others, probably.
type Span struct{ Earliest, Latest time.Time }

// Outlook is what can be expected of a pending job (docs/contract/jobs.md#outlook).
type Outlook struct {
	// Position is about how many jobs are served until this one is, itself included: 1 is
	// the next. More may be if others come, and fewer where accounts take turns.
	Position int
	// Start and Completion are when its run begins and when it is done; nil where that
	// cannot be told.
	Start, Completion *Span
}

const (
	// lineFor is how long a service remembers a line.
	lineFor = 2 * time.Second
	// spread is how many standard deviations are allowed for: four of five run times of a
	// normal distribution are within.
	spread = 1.28
	// margin is the part by which times may differ from what is known of them otherwise,
	// and estimateMargin that for what an engine estimates or few runs tell.
	margin         = 0.1
	estimateMargin = 0.25
)

// lines remembers the lines of a service's lanes.
type lines struct {
	mu    sync.Mutex
	known map[Lane]knownLine
}

type knownLine struct {
	line Line
	err  error
	at   time.Time
}

// Outlook returns what can be expected of a job that is pending, by the line of its lane
// as it was within two seconds. It is not known of any other job, or without a Lines. The
// limit is the account's of pending and processing jobs.
func (s *Service) Outlook(ctx context.Context, j Job, limit int) (Outlook, bool) {
	if s.config.Lines == nil || j.Status != Pending {
		return Outlook{}, false
	}
	line, err := s.line(ctx, j.Lane)
	if err != nil {
		return Outlook{}, false
	}
	own, err := s.config.Lines.Own(ctx, j, limit)
	if err != nil {
		s.config.Logger.WarnContext(ctx, "read an account's place in the line", "error", err)
		return Outlook{}, false
	}
	return line.outlook(j, own, s.config.Workers[j.Lane], s.config.Now()), true
}

// line returns the line of a lane, as it was within lineFor.
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
		s.config.Logger.WarnContext(ctx, "read the line of a lane", "lane", lane, "error", known.err)
	}
	if s.lines.known == nil {
		s.lines.known = map[Lane]knownLine{}
	}
	s.lines.known[lane] = known
	return known.line, known.err
}

// outlook returns what can be expected of a pending job with so many workers.
func (l Line) outlook(j Job, own Own, workers int, now time.Time) Outlook {
	least, most := l.ahead(j.Account, own)
	told := Outlook{Position: most + 1}
	if l.ByAccount == nil {
		workers = min(workers, l.Running)
	}
	// Where nobody works there may be no worker, and where nothing was done nobody knows.
	if l.Running == 0 || workers == 0 || len(l.Runs) == 0 {
		return told
	}
	mean, deviation := meanOf(l.Runs)
	turns := func(ahead int) int { return max(0, ahead+1+l.Running-workers) }
	// A worker ends its job at any time between now and a whole run from now.
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

// ahead returns how many waiting jobs are served before one of an account, at least and at
// most, while no others come: accounts take turns.
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

// takes returns how many seconds a job's run takes, by what its engine told when it was
// accepted, or by the runs of its model. Of the first run of a model nothing is known.
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

// spanOf returns the span between two times from now on, in seconds, within the job's
// deadline.
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

// meanOf returns the mean of run times and their standard deviation, in seconds.
func meanOf(runs []RunTime) (mean, deviation float64) {
	for _, run := range runs {
		mean += run.Took.Seconds() / float64(len(runs))
	}
	for _, run := range runs {
		deviation += (run.Took.Seconds() - mean) * (run.Took.Seconds() - mean) / float64(len(runs))
	}
	return mean, math.Sqrt(deviation)
}
