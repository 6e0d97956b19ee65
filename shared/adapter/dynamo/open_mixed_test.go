package dynamo_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

// submit accepts a job as the service does, which reads the backlog before.
func (p *processes) submit(jobs *dynamo.Jobs, id string, limit int) error {
	backlog, err := jobs.Backlog(p.Context(), job.VideoLane, "acme", limit)
	for err == nil && limit > 0 && backlog.AccountOpen >= limit {
		if backlog.Recount == nil {
			return job.TooManyOpen(limit)
		}
		backlog, err = backlog.Recount(p.Context())
	}
	if err != nil {
		return err
	}
	return jobs.Accept(p.Context(), p.job(id), limit)
}

// race submits so many jobs at once by all processes, and returns those that were accepted.
func (p *processes) race(name string, n, limit int) (accepted []string) {
	p.Helper()
	id := func(i int) string { return fmt.Sprintf("job_%s_%03d", name, i) }
	for _, i := range conformance.Winners(p, conformance.Race(n, func(i int) error {
		return p.submit(p.all[i%len(p.all)], id(i), limit)
	}), fault.Limited) {
		accepted = append(accepted, id(i))
	}
	return accepted
}

// exactly requires that so many jobs are accepted, one after the other: while one process compares
// a large set with the records, others do not see what it finds.
func (p *processes) exactly(n int, name string, limit int) {
	p.Helper()
	for i := range n {
		conformance.OK(p, p.submit(p.next(), fmt.Sprintf("job_%s_%d", name, i), limit))
	}
	conformance.Fails(p, p.submit(p.next(), "job_over_"+name, limit), fault.Limited)
}

// A key's limit is exact also beside keys of its account that have none and have filled sets of
// which the limit says nothing, however many jobs are submitted at once.
func TestLimitIsExactBesideKeysWithoutOne(t *testing.T) {
	for _, limit := range []int{130, 260} { // one set, and two
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			p, records := newProcesses(t, 3, awstest.Faults{})
			const unlimited = 120
			p.fill(unlimited, 0)
			if sizes := records.openSets(t); len(sizes) < 5 {
				t.Fatalf("the sets have %v", sizes)
			}
			accepted := p.race("first", limit-unlimited+40, limit)
			conformance.Same(t, "jobs accepted at once", len(accepted), limit-unlimited)
			conformance.OK(t, p.next().Accept(t.Context(), p.job(accepted[0]), limit)) // again

			// What ends makes room for exactly as many, wherever it was.
			for i := range 30 {
				conformance.OK(t, p.next().Fail(t.Context(), fmt.Sprintf("job_%03d", 90+i), "", job.CancelledFailure(), p.at()))
			}
			conformance.Same(t, "jobs accepted after 30 have ended", len(p.race("second", 60, limit)), 30)
			p.failElsewhere("job_000")
			p.failElsewhere("job_001")
			p.pass(dynamo.BelievedFor)
			p.exactly(2, "third", limit)
		})
	}
}

// Keys of an account with different limits share its count, whichever of them has more sets, or
// more room in one of them.
func TestDifferentLimitsShareTheCount(t *testing.T) {
	for _, c := range []struct{ first, open, limit int }{{300, 80, 100}, {250, 200, 260}, {260, 120, 200}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			p, _ := newProcesses(t, 3, awstest.Faults{})
			p.fill(c.open, c.first)
			conformance.Same(t, "jobs accepted at once", len(p.race("first", c.limit-c.open+30, c.limit)), c.limit-c.open)
			// The first key has what is left of its own limit.
			left := max(0, c.first-c.limit)
			if left > 60 {
				conformance.OK(t, p.submit(p.next(), "job_of_the_first", c.first))
			} else {
				conformance.Same(t, "jobs of the first key", len(p.race("second", left+10, c.first)), left)
			}
			p.pass(job.MaxAge + 2*time.Hour)
			p.exactly(2, "third", 2)
		})
	}
}

// Whatever is in the sets of an account, what a limit gives its own adds up to what is left of it,
// and does not change by what is added within that. So those who have counted at different times
// add no more together.
func TestRoomsAddUpToTheLimit(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		limit := 251 + random.IntN(1500)
		own := (limit + 249) / 250
		sizes := make([]int, own+random.IntN(10))
		all := 0
		for i := range sizes {
			sizes[i] = random.IntN(1 + random.IntN(2*limit/len(sizes)))
			all += sizes[i]
		}
		before := dynamo.Rooms(limit, sizes)
		left := 0
		for i, room := range before {
			for range max(0, room-sizes[i]) {
				left++
				if sizes[i]++; random.IntN(50) == 0 {
					conformance.Same(t, "rooms after some were added", dynamo.Rooms(limit, sizes), before)
				}
			}
		}
		if want := max(0, limit-all); left != want && (left > want || all <= limit) {
			t.Fatalf("a limit of %d with %d jobs leaves %d", limit, all, left)
		}
	}
}

// A process that has read nothing of an account, and one that adds to its first set alone, find
// there that it has others.
func TestFirstSetTellsOfOthers(t *testing.T) {
	p, _ := newProcesses(t, 2, awstest.Faults{})
	p.fill(120, 0)
	conformance.Fails(t, p.all[0].Accept(t.Context(), p.job("job_more"), 115), fault.Limited)
	conformance.OK(t, p.all[1].Accept(t.Context(), p.job("job_more"), 121))
	conformance.Fails(t, p.all[1].Accept(t.Context(), p.job("job_over"), 121), fault.Limited)
	p.pass(job.MaxAge + time.Hour)
	conformance.OK(t, p.all[1].Accept(t.Context(), p.job("job_later"), 1))
}

// Limits of so many sets that some are read for an estimate count those beyond them too.
func TestEstimateCountsSetsBeyondTheLimit(t *testing.T) {
	p, _ := newProcesses(t, 1, awstest.Faults{})
	const open = 160
	p.fill(open, 0)
	for range 8 {
		rough, err := p.next().Backlog(t.Context(), job.VideoLane, "acme", 2100)
		conformance.OK(t, err)
		if rough.AccountOpen < open {
			t.Errorf("the estimate of %d jobs is %d", open, rough.AccountOpen)
		}
		exact, err := rough.Recount(t.Context())
		conformance.OK(t, err)
		conformance.Same(t, "open jobs", exact.AccountOpen, open)
	}
}

// Just after an account has become wide, most of its jobs are in its first set: they are counted
// as they are, and only what a look at another set finds is multiplied.
func TestOwnOfAWideAccount(t *testing.T) {
	p, _ := newProcesses(t, 2, awstest.Faults{})
	const open = 130
	p.fill(open, 0)
	for _, limit := range []int{0, 130} {
		for i := range 40 {
			at := open - 40 + i
			own, err := p.next().Own(t.Context(), p.job(fmt.Sprintf("job_%03d", at)), limit)
			conformance.OK(t, err)
			// The others have 30 jobs, one or two each.
			if own.Before < min(at, 100) || own.Before > 100+19*5 || own.Before+own.After > 100+19*5 {
				t.Errorf("a key with limit %d, job %d of %d: %+v", limit, at, open, own)
			}
		}
	}
}
