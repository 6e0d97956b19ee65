package job

import (
	"context"
	"math"
	"sync"
	"time"
)

// Queues reads the queues of pending jobs. A read costs no more than counting index entries.
type Queues interface {
	Queue(ctx context.Context, lane Lane) (Queue, error)
	// Own counts the account's other pending jobs on the job's lane.
	Own(ctx context.Context, j Job) (Own, error)
}

type Queue struct {
	Waiting int
	// ByAccount divides Waiting by account. It is nil if the queue keeps no count per account.
	ByAccount map[string]int
	Running   int
	Runs      []RunTime // recently completed, in any order
}

type RunTime struct {
	Model string // canonical id, or empty
	// Took is the time that the run would have taken without runs in spare slots, which make all runs slower.
	Took time.Duration
	// Account is empty and Ended is zero if they are unknown.
	Account string
	Ended   time.Time
}

// Own counts the account's pending jobs before and after a given job on its lane. If ByAccount is
// nil, some of them may already be running.
type Own struct{ Before, After int }

type Span struct{ Earliest, Latest time.Time }

// Outlook is a forecast for a pending job (docs/contract/jobs.md#outlook).
type Outlook struct {
	// Position is the approximate position in the queue; 1 is next. It may grow when other accounts
	// submit jobs, because accounts take turns.
	Position int
	// Start and Completion are nil if unknown.
	Start, Completion *Span
}

const (
	queueFor = 2 * time.Second
	// In a normal distribution, four of five values are within this many standard deviations of the mean.
	sigmas = 1.28
	// A range is widened by fewRuns divided by the number of known runs, but at least by the fraction margin. A job's
	// own run time is widened by runMargin.
	margin, fewRuns, runMargin = 0.1, 0.5, 0.25
)

type queues struct {
	mu    sync.Mutex
	known map[Lane]knownQueue
}

type knownQueue struct {
	queue Queue
	err   error
	at    time.Time
}

// Outlook forecasts a pending job of normal priority. It returns false for any other job, or if there are no Queues.
func (s *Service) Outlook(ctx context.Context, j Job) (Outlook, bool) {
	if s.config.Queues == nil || j.Status != Pending || j.Low() {
		return Outlook{}, false
	}
	queue, err := s.queue(ctx, j.Lane)
	if err != nil {
		return Outlook{}, false
	}
	own, err := s.config.Queues.Own(ctx, j)
	if err != nil {
		s.config.Logger.WarnContext(ctx, "cannot read an account's place in the queue", "error", err)
		return Outlook{}, false
	}
	return queue.outlook(j, own, s.config.Workers[j.Lane], s.config.Now()), true
}

func (s *Service) queue(ctx context.Context, lane Lane) (Queue, error) {
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	now := s.config.Now()
	known, ok := s.queues.known[lane]
	if ok && now.Sub(known.at).Abs() < queueFor {
		return known.queue, known.err
	}
	known = knownQueue{at: now}
	if known.queue, known.err = s.config.Queues.Queue(ctx, lane); known.err != nil {
		if ctx.Err() != nil {
			return Queue{}, known.err // the read failed only because this caller has gone away
		}
		s.config.Logger.WarnContext(ctx, "cannot read the queue of a lane", "lane", lane, "error", known.err)
	}
	if s.queues.known == nil {
		s.queues.known = map[Lane]knownQueue{}
	}
	s.queues.known[lane] = known
	return known.queue, known.err
}

func (q Queue) outlook(j Job, own Own, workers int, now time.Time) Outlook {
	least, most := q.ahead(j.Account, own)
	forecast := Outlook{Position: most + 1}
	if q.ByAccount == nil {
		workers = min(workers, q.Running)
	}
	// If no jobs are running, there may be no worker. If there are no past runs, the run time is unknown.
	if q.Running == 0 || workers == 0 || len(q.Runs) == 0 {
		return forecast
	}
	mean, deviation := meanOf(q.Runs)
	inexact := max(margin, fewRuns/float64(len(q.Runs)))
	// More runs than workers share the workers.
	slots := max(workers, q.Running)
	slowdown := float64(slots) / float64(workers)
	turns := func(ahead int) int { return max(0, ahead+1+q.Running-slots) }
	// A slot finishes its current job between now and one full run later.
	soonest, last := turns(least), turns(most)
	earliest := mean*slowdown*float64(max(0, soonest-1)/slots)*(1-inexact) -
		sigmas*deviation*math.Sqrt(float64(soonest))/float64(workers)
	latest := mean*slowdown*float64((last+slots-1)/slots)*(1+inexact) +
		sigmas*deviation*math.Sqrt(float64(last))/float64(workers)
	forecast.Start = spanOf(j, now, earliest, latest)
	if shortest, longest, known := q.takes(j); known {
		j.Deadline = j.RunDeadline()
		forecast.Completion = spanOf(j, now, max(0, earliest)+shortest, latest+longest*slowdown)
	}
	return forecast
}

// ahead returns how many waiting jobs the workers will start before the account's job, assuming
// that no more arrive. Accounts take turns.
func (q Queue) ahead(account string, own Own) (least, most int) {
	if q.ByAccount == nil {
		return max(0, own.Before-q.Running), max(own.Before, q.Waiting-1-own.After)
	}
	least, most = own.Before, own.Before
	for other, waiting := range q.ByAccount {
		if other != account {
			least += min(waiting, own.Before)
			most += min(waiting, own.Before+1)
		}
	}
	return least, most
}

// takes returns the range of a job's run time in seconds. It uses the engine's estimate or, if there is none, earlier
// runs of the model.
func (q Queue) takes(j Job) (shortest, longest float64, known bool) {
	shortest = math.Inf(1)
	if seconds := j.Estimate.Seconds(); seconds > 0 {
		shortest, longest = seconds, seconds
	} else {
		for _, run := range q.Runs {
			if run.Model == j.Model {
				shortest, longest = min(shortest, run.Took.Seconds()), max(longest, run.Took.Seconds())
			}
		}
	}
	return shortest * (1 - runMargin), longest * (1 + runMargin), !math.IsInf(shortest, 1)
}

// spanOf converts offsets from now, in seconds, to a span that ends no later than the job's deadline.
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

func meanOf(runs []RunTime) (mean, deviation float64) {
	for _, run := range runs {
		mean += run.Took.Seconds() / float64(len(runs))
	}
	for _, run := range runs {
		deviation += (run.Took.Seconds() - mean) * (run.Took.Seconds() - mean) / float64(len(runs))
	}
	return mean, math.Sqrt(deviation)
}
