package dynamo

import (
	"context"
	"math"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/job"
)

const (
	// setsRead is how many sets an account may have of which all are read to count its jobs.
	// Of one with more, setsSampled are read.
	setsRead, setsSampled = 8, 4
	// surely is by how many standard deviations of what was counted in a sample the count is
	// raised, so that it is hardly ever too low.
	surely = 4
)

// Backlog returns the work that is ahead of a new job on the lane. The number of all
// jobs is the queue's, which may lag; run times and workers are as they were within
// laneStateFor. That of the account includes jobs that failed a moment
// ago, as long as neither is more than there can be. Where the limit is so high that there are
// many sets of open jobs, it reads some of them for an estimate. A recount reads all sets, and the
// last one compares them with the records.
//
// Errors: fault.Unavailable.
func (s *Jobs) Backlog(ctx context.Context, lane job.Lane, account string, limit int) (job.Backlog, error) {
	var (
		backlog job.Backlog
		err     error
	)
	if backlog.Jobs, err = s.lengths.Length(ctx, lane); err != nil {
		return job.Backlog{}, err
	}
	state, err := s.lane(ctx, lane)
	if err != nil {
		return job.Backlog{}, storeError("read the backlog", err)
	}
	backlog.RunTime, backlog.Fleet, backlog.Others = state.mean(), state.fleet, job.OthersOf(state.ran, account)
	of := s.limitOf(account, limit)
	exactly := func(ctx context.Context) (job.Backlog, error) { return s.countOpen(ctx, lane, account, of, backlog) }
	if of.sets <= setsRead || s.isUneven(account, of) {
		return exactly(ctx)
	}
	mean, most, there, err := s.sampleOpen(ctx, lane, account, of)
	if err != nil {
		return job.Backlog{}, storeError("read the backlog", err)
	}
	if !there || most.all >= of.jobs || mean.lane > backlog.Jobs {
		return exactly(ctx)
	}
	s.stayWide(ctx, account, of, mean.all)
	estimate := most.in(backlog)
	estimate.Recount = exactly
	return estimate, nil
}

// openCount is how many jobs of an account are open on all lanes, and on one of them.
type openCount struct{ all, lane int }

// in returns the backlog of a queue with what was counted of an account. The queue's number may
// lag behind that.
func (c openCount) in(queued job.Backlog) job.Backlog {
	queued.Jobs, queued.AccountJobs, queued.AccountOpen = max(queued.Jobs, c.lane), c.lane, c.all
	return queued
}

// countOpen counts the open jobs of an account, on all lanes and on one whose backlog is this
// without them. The records are read where the sets must be wrong or would mean a refusal by the
// limit; what else would mean one is for the caller, who then asks for a recount.
//
// Errors: fault.Unavailable.
func (s *Jobs) countOpen(
	ctx context.Context, lane job.Lane, account string, limit openLimit, queued job.Backlog,
) (job.Backlog, error) {
	sets, err := s.allOpen(ctx, account, limit)
	if err != nil {
		return job.Backlog{}, storeError("read the backlog", err)
	}
	compared := func(ctx context.Context) (job.Backlog, error) {
		left, err := s.freeEnded(ctx, account, sets)
		if err != nil {
			return job.Backlog{}, storeError("read the backlog", err)
		}
		count := countIn(left, lane)
		s.stayWide(ctx, account, limit, count.all)
		return count.in(queued), nil
	}
	count := countIn(sets, lane)
	if count.all >= limit.jobs || count.lane > queued.Jobs {
		return compared(ctx)
	}
	s.stayWide(ctx, account, limit, count.all)
	counted := count.in(queued)
	if count.all > 0 {
		counted.Recount = compared
	}
	return counted, nil
}

// countIn counts the elements of sets, and those of a lane.
func countIn(sets []openSet, lane job.Lane) (count openCount) {
	for _, set := range sets {
		count.all += len(set.elements)
		for _, element := range set.elements {
			if readOpenJob(element).lane == lane {
				count.lane++
			}
		}
	}
	return count
}

// sampleOpen estimates how many open jobs an account has, on all lanes and on one, from some of
// its sets: the mean, and what they hardly exceed. Jobs are spread over sets by their ids, but
// the first set may have more, as that of an account without a limit has from before it had
// others: then it is always read. Under a limit that is done once in toldFor, as it would be the
// busiest of all. It tells whether other keys make the rest uneven: then there is no estimate.
func (s *Jobs) sampleOpen(
	ctx context.Context, lane job.Lane, account string, limit openLimit,
) (mean, most openCount, there bool, err error) {
	var keys []item
	if limit.none || !s.isTold(account) || len(s.layouts(account, limit)) > 0 {
		keys = append(keys, openKey(account, 0))
	}
	alone := len(keys)
	sampled, others := setsSampled-alone, limit.sets-alone
	from := int(s.samples.Add(1)) * sampled
	for i := range sampled {
		keys = append(keys, openKey(account, alone+(from+i)%others))
	}
	// A moment old will do for an estimate.
	found, err := readAsked(ctx, s.client, s.table, types.KeysAndAttributes{Keys: keys})
	if err != nil {
		return mean, most, false, err
	}
	var first, rest openCount
	firstID := (&reader{item: openKey(account, 0)}).text("id")
	for _, one := range found {
		set, err := readOpenSet(one)
		if err != nil {
			return mean, most, false, err
		}
		count := countIn([]openSet{set}, lane)
		if alone > 0 && (&reader{item: one}).text("id") == firstID {
			first = count
			s.learn(account, set)
		} else {
			rest.all, rest.lane = rest.all+count.all, rest.lane+count.lane
		}
	}
	if alone > 0 {
		s.told(account)
	}
	scaled := func(count float64) int { return int(math.Ceil(count * float64(others) / float64(sampled))) }
	raised := func(count int) int { return scaled(float64(count) + surely*math.Sqrt(float64(count)+1)) }
	return openCount{first.all + scaled(float64(rest.all)), first.lane + scaled(float64(rest.lane))},
		openCount{first.all + raised(rest.all), first.lane + raised(rest.lane)},
		!s.isUneven(account, limit), nil
}
