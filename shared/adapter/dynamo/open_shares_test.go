package dynamo_test

import (
	"crypto/rand"
	"fmt"
	"testing"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

// No job is refused for the account's share of a lane because of others that have ended long ago:
// before that, its sets are compared with the records, once in a while.
func TestRefusalByTheShareIsCompared(t *testing.T) {
	// Where the jobs are estimated, each refusal reads a sample, all sets, and the records of the
	// jobs in sets that have very few.
	for _, c := range []struct{ limit, believed, others int }{{100, 0, 0}, {3000, 3, 1}} {
		limit := c.limit
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			p, records := newProcesses(t, 1, awstest.Faults{})
			const open = 40
			p.fill(open, limit)
			p.queue.length = open
			service := job.NewService(job.Config{
				Store: p.all[0], Now: p.at, Random: rand.Reader, Workers: map[job.Lane]int{job.VideoLane: 1},
			})
			check := func() error { return service.CheckCapacity(t.Context(), job.VideoLane, "acme", limit, 0) }
			conformance.Fails(t, check(), fault.Limited)
			p.proxy.Calls()
			conformance.Fails(t, check(), fault.Limited)
			conformance.Same(t, "batches of the next refusal", p.proxy.Calls()["DynamoDB.BatchGetItem"], c.believed)
			// All fail, and others fill three quarters of the queue.
			for i := range open {
				p.failElsewhere(fmt.Sprintf("job_%03d", i))
			}
			p.pass(dynamo.BelievedFor)
			conformance.OK(t, check())
			conformance.Same(t, "what is left in the sets", len(records.openSets(t)), 0)
			// What others have in the queue is no reason to compare.
			p.fill(1, limit)
			p.queue.length = 1000
			p.proxy.Calls()
			conformance.Fails(t, check(), fault.Limited)
			conformance.Same(t, "batches of a refusal because of others", p.proxy.Calls()["DynamoDB.BatchGetItem"], c.others)
		})
	}
}
