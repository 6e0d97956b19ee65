package dynamo_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

// processes are several of them over the same records, whose calls are counted, and one whose
// calls are not and meet no faults.
type processes struct {
	*testing.T
	proxy *awstest.Proxy
	all   []*dynamo.Jobs
	calm  *dynamo.Jobs
	queue *queueOf
	last  int

	mu  sync.Mutex
	now time.Time
}

// newProcesses returns processes over an empty table.
func newProcesses(t *testing.T, n int, faults awstest.Faults) (*processes, counted) {
	t.Helper()
	cloud := local.Cloud(t)
	_, records := newJobs(t, cloud, &handedOver{})
	p := &processes{
		T: t, proxy: cloud.Proxy(t, 23, faults), queue: &queueOf{length: 1 << 20},
		now: time.Now().UTC().Truncate(time.Millisecond),
	}
	usages := cloud.MakeTable(t, "usage")
	of := func(config aws.Config) *dynamo.Jobs {
		client := dynamo.NewClient(config)
		runs := dynamo.NewRuns(client, records.table).CountIn(dynamo.NewUsage(client, usages))
		return dynamo.NewJobs(runs, &handedOver{}, p.queue, p.at)
	}
	p.calm = of(cloud.Config())
	for range n {
		p.all = append(p.all, of(p.proxy.Config()))
	}
	return p, records
}

// at is the time of all processes, and pass lets some of it pass.
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

// next returns the processes in turn.
func (p *processes) next() *dynamo.Jobs {
	p.last++
	return p.all[p.last%len(p.all)]
}

func (p *processes) job(id string) job.Job {
	j := newJob(id)
	j.CreatedAt, j.Deadline = p.at(), p.at().Add(job.MaxAge)
	return j
}

// fill accepts so many jobs under a limit.
func (p *processes) fill(n, limit int) {
	p.Helper()
	for i := range n {
		conformance.OK(p, p.calm.Accept(p.Context(), p.job(fmt.Sprintf("job_%03d", i)), limit))
	}
}

// refused requires that each process refuses a job for the account's limit, and returns how
// many batches were read.
func (p *processes) refused(limit int) (batches int) {
	p.Helper()
	p.proxy.Calls()
	for range p.all {
		conformance.Fails(p, p.next().Accept(p.Context(), p.job("job_refused"), limit), fault.Limited)
	}
	return p.proxy.Calls()["DynamoDB.BatchGetItem"]
}

// failElsewhere fails a job as the state machine does, which does not touch the sets.
func (p *processes) failElsewhere(id string) {
	p.Helper()
	conformance.OK(p, p.next().Runs.Fail(p.Context(), id, "", job.TimeoutFailure(), p.at()))
}

// A full account is compared with the records of its jobs once in a while, by one of all
// processes. What completes or is cancelled has left before; what the state machine fails, or
// is past its deadline, is found by the next comparison, and a deadline is not missed.
func TestFullAccountIsComparedOnceInAWhile(t *testing.T) {
	// Where there are several sets, each refusal reads them in a batch.
	for _, c := range []struct{ limit, sets, records int }{{30, 0, 1}, {130, 0, 2}, {260, 3, 3}} {
		t.Run(fmt.Sprint(c.limit), func(t *testing.T) {
			p, _ := newProcesses(t, 3, awstest.Faults{})
			ctx := t.Context()
			p.fill(c.limit, c.limit)
			conformance.Same(t, "batches of the first refusals", p.refused(c.limit), c.sets+c.records)
			conformance.Same(t, "those of the next", p.refused(c.limit), c.sets)

			_, err := p.next().Start(ctx, "job_003", "n", p.at())
			conformance.OK(t, err)
			conformance.OK(t, p.next().Complete(ctx, "job_003", "n", job.Result{Blob: "b", MIME: "video/mp4"}, p.at()))
			conformance.OK(t, p.next().Accept(ctx, p.job("job_after_one_completed"), c.limit))
			conformance.Same(t, "those after one has completed", p.refused(c.limit), c.sets)

			p.failElsewhere("job_004")
			conformance.Same(t, "those after one has failed", p.refused(c.limit), c.sets)
			p.pass(dynamo.BelievedFor)
			conformance.OK(t, p.next().Accept(ctx, p.job("job_after_one_failed"), c.limit))
			p.refused(c.limit)

			p.pass(job.MaxAge - dynamo.BelievedFor - time.Millisecond)
			p.refused(c.limit)
			p.pass(time.Millisecond)
			conformance.OK(t, p.next().Accept(ctx, p.job("job_after_the_deadlines"), c.limit))
		})
	}
}

// Few jobs are compared each time, so that each end makes room at once.
func TestSmallAccountIsComparedEachTime(t *testing.T) {
	p, _ := newProcesses(t, 2, awstest.Faults{})
	const limit = 24
	p.fill(limit, limit)
	for i := range 3 {
		conformance.Same(t, "batches", p.refused(limit), len(p.all))
		p.failElsewhere(fmt.Sprintf("job_%03d", i))
		conformance.OK(t, p.next().Accept(t.Context(), p.job(fmt.Sprint("job_more_", i)), limit))
	}
}

// A time that a wrong clock wrote is not believed.
func TestWrongClockIsNotBelieved(t *testing.T) {
	p, records := newProcesses(t, 1, awstest.Faults{})
	const limit = 30
	p.fill(limit, limit)
	p.refused(limit)
	_, err := records.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &records.table, UpdateExpression: aws.String("SET believed_until = :until"),
		Key: map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: "account#acme"}, "part": &types.AttributeValueMemberS{Value: "open"},
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":until": &types.AttributeValueMemberN{Value: fmt.Sprint(p.at().Add(time.Hour).UnixMilli())},
		},
	})
	conformance.OK(t, err)
	p.failElsewhere("job_000")
	p.pass(dynamo.BelievedFor) // for which the process believes its own comparison
	conformance.OK(t, p.next().Accept(t.Context(), p.job("job_more"), limit))
}

// Processes whose clocks differ by more than is allowed for compare a full account once in a while
// each, and not in turn at each refusal.
func TestSkewedClocksDoNotCompareInTurn(t *testing.T) {
	p, records := newProcesses(t, 1, awstest.Faults{})
	const limit = 30
	p.all = append(p.all, dynamo.NewJobs(dynamo.NewRuns(dynamo.NewClient(p.proxy.Config()), records.table), &handedOver{},
		p.queue, func() time.Time { return p.at().Add(10 * time.Second) }))
	p.fill(limit, limit)
	conformance.Same(t, "batches of the first refusals", p.refused(limit), 2)
	conformance.Same(t, "those of the next", p.refused(limit), 0)
	conformance.Same(t, "those of the next", p.refused(limit), 0)
	p.failElsewhere("job_000")
	p.pass(dynamo.BelievedFor)
	conformance.OK(t, p.next().Accept(t.Context(), p.job("job_more"), limit))
}

// Whatever calls fail or lose their answers, and whoever compares: there are never more open
// jobs than the limit, and once all have ended there is room for exactly as many. So it is where
// a key without a limit has added the first ones, to twenty sets.
func TestOpenJobsThroughTrouble(t *testing.T) {
	for _, c := range []struct{ limit, first int }{{7, 7}, {40, 40}, {120, 120}, {130, 0}, {280, 0}} {
		limit := c.limit
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			p, _ := newProcesses(t, 5, trouble)
			const turns = 20
			var mu sync.Mutex
			// open are jobs that were accepted for certain and not ended since.
			open, refused := map[string]bool{}, 0
			before := max(0, limit-20)
			p.fill(before, c.first)
			for i := range before {
				open[fmt.Sprintf("job_%03d", i)] = true
			}
			for _, err := range conformance.Race(len(p.all), func(worker int) error {
				for turn := range turns {
					id := fmt.Sprintf("job_%d_%03d", worker, turn)
					err := until(t.Context(), func() error {
						_, err := p.all[worker].Backlog(t.Context(), job.VideoLane, "acme", limit)
						return err
					})
					if err != nil {
						return err
					}
					err = until(t.Context(), func() error { return p.all[worker].Accept(t.Context(), p.job(id), limit) })
					mu.Lock()
					switch {
					case err == nil:
						open[id] = true
					case fault.Is(err, fault.Limited):
						refused++
					default:
						mu.Unlock()
						return err
					}
					all := len(open)
					if turn%3 == 0 {
						delete(open, id)
					}
					mu.Unlock()
					if all > limit {
						return fmt.Errorf("%d jobs are open, of %d", all, limit)
					}
					if turn%4 == 3 {
						p.pass(dynamo.BelievedFor / 3)
					}
					if turn%3 != 0 || err != nil {
						continue
					}
					end := p.all[worker].Fail
					if turn%2 == 0 { // as the state machine does
						end = p.all[worker].Runs.Fail
					}
					if err := until(t.Context(), func() error {
						return end(t.Context(), id, "", job.CancelledFailure(), p.at())
					}); err != nil && !fault.Is(err, fault.Conflict) {
						return err
					}
				}
				return nil
			}) {
				conformance.OK(t, err)
			}
			t.Logf("%d refusals, %d of %d open; met %v", refused, len(open), limit, p.proxy.Met())
			if refused == 0 || len(open) == 0 {
				t.Error("too little is proven")
			}
			for id := range open {
				if len(open) <= limit/2 {
					break
				}
				delete(open, id)
				conformance.OK(t, until(t.Context(), func() error {
					return p.all[0].Runs.Fail(t.Context(), id, "", job.CancelledFailure(), p.at())
				}))
			}
			p.pass(2 * dynamo.BelievedFor) // of a comparison that was cut off too
			for i := range limit - len(open) {
				conformance.OK(t, p.calm.Accept(t.Context(), p.job(fmt.Sprint("job_last_", i)), limit))
			}
			conformance.Fails(t, p.calm.Accept(t.Context(), p.job("job_over"), limit), fault.Limited)
		})
	}
}
