package dynamo_test

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

// processes share records and a clock. Their calls are counted and may fail, except for calls through the field calm.
type processes struct {
	*testing.T
	proxy *awstest.Proxy
	all   []*dynamo.Jobs
	calm  *dynamo.Jobs
	last  int

	mu  sync.Mutex
	now time.Time
}

func newProcesses(t *testing.T, n int, faults awstest.Faults) *processes {
	t.Helper()
	cloud := local.Cloud(t)
	_, records := newJobs(t, cloud, &handedOver{})
	p := &processes{T: t, proxy: cloud.Proxy(t, 23, faults), now: time.Now().UTC().Truncate(time.Millisecond)}
	usages := cloud.MakeTable(t, "usage")
	of := func(config aws.Config) *dynamo.Jobs {
		client := dynamo.NewClient(config)
		runs := dynamo.NewRuns(client, records.table).CountIn(dynamo.NewUsage(client, usages))
		return dynamo.NewJobs(runs, &handedOver{}, records, p.at)
	}
	p.calm = of(cloud.Config())
	for range n {
		p.all = append(p.all, of(p.proxy.Config()))
	}
	return p
}

func (p *processes) at() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *processes) pass(length time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(length)
}

func (p *processes) next() *dynamo.Jobs {
	p.last++
	return p.all[p.last%len(p.all)]
}

// job returns a job that is accepted now, but whose id is older by the given time.
func (p *processes) job(before time.Duration) job.Job {
	p.Helper()
	id, err := job.NewID(p.at().Add(-before), rand.Reader)
	conformance.OK(p, err)
	j := newJob(id)
	j.CreatedAt, j.Deadline = p.at(), p.at().Add(job.MaxAge)
	return j
}

func (p *processes) fill(n, limit int) (jobs []job.Job) {
	p.Helper()
	for range n {
		j := p.job(0)
		conformance.OK(p, p.calm.Accept(p.Context(), j, limit))
		jobs = append(jobs, j)
	}
	return jobs
}

// race concurrently submits n jobs from all processes, and returns how many were accepted.
func (p *processes) race(n, limit int) int {
	p.Helper()
	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = p.job(0)
	}
	return len(conformance.Winners(p, conformance.Race(n, func(i int) error {
		return p.all[i%len(p.all)].Accept(p.Context(), jobs[i], limit)
	}), fault.Limited))
}

// The capacities add up to the limit minus the jobs that exceed their portions. Adding jobs within
// the portions does not change the capacities.
func TestCapacitiesAddUpToTheLimit(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(7, 7))
	for range 2000 {
		limit, sizes, all := 1+random.IntN(1500), make([]int, 8), 0
		for i := range sizes {
			sizes[i] = random.IntN(1 + random.IntN(1+limit/4))
			all += sizes[i]
		}
		before, left := dynamo.Capacities(limit, sizes), 0
		for i, capacity := range before {
			for range max(0, capacity-sizes[i]) {
				left++
				if sizes[i]++; random.IntN(50) == 0 {
					conformance.Same(t, "capacities after jobs were added", dynamo.Capacities(limit, sizes), before)
				}
			}
		}
		if want := max(0, limit-all); left != want && (left > want || all <= limit) {
			t.Fatalf("a limit of %d with %d jobs leaves a capacity of %d", limit, all, left)
		}
	}
}

// If an account's keys have different limits, each limit is exact under concurrency.
func TestDifferentLimitsShareTheCount(t *testing.T) {
	for _, c := range []struct{ first, open, limit int }{{300, 60, 80}, {0, 60, 90}, {30, 30, 45}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			p := newProcesses(t, 3, awstest.Faults{})
			jobs := p.fill(c.open, c.first)
			conformance.Same(t, "jobs accepted concurrently", p.race(c.limit-c.open+20, c.limit), c.limit-c.open)
			for _, j := range jobs[:5] {
				conformance.OK(t, p.next().Fail(t.Context(), j.ID, "", job.CancelledFailure(), p.at()))
			}
			conformance.Same(t, "jobs accepted after five have ended", p.race(15, c.limit), 5)
		})
	}
}

// If a process dies after it wrote a job's end and before the next write, the job still counts as open.
func TestLeakedJobIsDroppedByAge(t *testing.T) {
	p, ctx := newProcesses(t, 1, awstest.Faults{}), t.Context()
	const limit = 3
	for _, j := range p.fill(limit, limit)[:2] {
		conformance.OK(t, p.calm.WriteFailure(ctx, j.ID, job.CancelledFailure(), p.at()))
	}
	p.pass(job.MaxAge - time.Millisecond)
	conformance.Fails(t, p.next().Accept(ctx, p.job(0), limit), fault.Limited)
	p.pass(time.Millisecond)
	for range limit { // the third job is past its deadline
		conformance.OK(t, p.next().Accept(ctx, p.job(0), limit))
	}
	conformance.Fails(t, p.next().Accept(ctx, p.job(0), limit), fault.Limited)
}

// If an open job's upload took long, its id is old. A process compares such a job with its record only occasionally.
func TestOpenJobWithOldIDCounts(t *testing.T) {
	p, ctx := newProcesses(t, 1, awstest.Faults{}), t.Context()
	j := p.job(time.Hour)
	conformance.OK(t, p.calm.Accept(ctx, j, 1))
	refused := func(what, calls string) {
		t.Helper()
		p.proxy.Calls()
		conformance.Fails(t, p.next().Accept(ctx, p.job(0), 1), fault.Limited)
		conformance.Same(t, what, awstest.CallList(p.proxy.Calls()), calls)
	}
	refused("calls with a comparison", "3 BatchGetItem")
	refused("calls of the next rejection", "2 BatchGetItem")
	p.pass(dynamo.CompareEvery)
	refused("calls after a while", "3 BatchGetItem")
	conformance.OK(t, p.calm.WriteFailure(ctx, j.ID, job.CancelledFailure(), p.at()))
	p.pass(dynamo.CompareEvery)
	conformance.OK(t, p.next().Accept(ctx, p.job(0), 1))
}

// After all jobs have ended, the entire limit is available again.
func TestOpenJobLimitHoldsThroughFailures(t *testing.T) {
	for _, limit := range []int{7, 40} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			p := newProcesses(t, 5, trouble)
			const turns = 20
			var mu sync.Mutex
			open, refused := map[string]bool{}, 0
			for _, j := range p.fill(max(0, limit-20), limit) {
				open[j.ID] = true
			}
			for _, err := range conformance.Race(len(p.all), func(worker int) error {
				for turn := range turns {
					j := p.job(0)
					err := until(t.Context(), func() error { return p.all[worker].Accept(t.Context(), j, limit) })
					mu.Lock()
					switch {
					case err == nil:
						open[j.ID] = true
					case fault.Is(err, fault.Limited):
						refused++
					default:
						mu.Unlock()
						return err
					}
					all := len(open)
					if turn%3 == 0 {
						delete(open, j.ID)
					}
					mu.Unlock()
					if all > limit {
						return fmt.Errorf("%d jobs are open, more than %d", all, limit)
					}
					if turn%3 != 0 || err != nil {
						continue
					}
					if err := until(t.Context(), func() error {
						return p.all[worker].Fail(t.Context(), j.ID, "", job.CancelledFailure(), p.at())
					}); err != nil && !fault.Is(err, fault.Conflict) {
						return err
					}
				}
				return nil
			}) {
				conformance.OK(t, err)
			}
			t.Logf("%d rejections, %d of %d open; faults: %v", refused, len(open), limit, p.proxy.Met())
			if refused == 0 || len(open) == 0 {
				t.Error("too few jobs were rejected or are open")
			}
			p.pass(job.MaxAge)
			for range limit {
				conformance.OK(t, p.calm.Accept(t.Context(), p.job(0), limit))
			}
			conformance.Fails(t, p.calm.Accept(t.Context(), p.job(0), limit), fault.Limited)
		})
	}
}
