// Package workertest contains tests that specify the behavior of [worker.Queue] and
// [worker.Delivery]. Every adapter runs them.
//
// Leases use the queue's own clock, so some tests wait whole seconds for a lease to expire. If the
// machine stalls, steps that must happen before the lease expires are repeated with a longer lease.
package workertest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/conformance"
)

// Harness contains a queue and the stores of its jobs. An adapter passes it to the suite.
type Harness struct {
	Queue worker.Queue
	Store job.Store
	Runs  job.Runs
	// Fair means that the queue always serves the account with the fewest leased jobs or, among several, the
	// account that has waited longest. Other queues are fair on average, which a short test cannot verify.
	Fair bool
}

// Run runs the suite. open returns an empty harness, and closes it when the test ends.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	conformance.Run(t, func(t *testing.T, group string, test test) {
		t.Parallel() // the tests mostly wait
		h := open(t)
		if group == "Fairness" && !h.Fair {
			t.Skip("the queue is fair on average")
		}
		again := func() Harness { return open(t) }
		test.run(&suite{T: t, Harness: h, open: again, ctx: conformance.Context(t)})
	},
		conformance.About("Receive", receiveTests), conformance.About(
			"Fairness", fairnessTests,
		), conformance.About("Lease", leaseTests), conformance.About("Settle", settleTests),
	)
}

// The name describes the queue's behavior.
type test struct {
	name string
	run  func(s *suite)
}

func (t test) Says() string { return t.name }

const (
	// shortLease expires during a test; longLease does not.
	shortLease, longLease = time.Second, time.Hour
	// aWhile is longer than it takes for a short lease to expire and its job to return.
	aWhile = shortLease + 1500*time.Millisecond
)

type suite struct {
	*testing.T
	Harness
	open func() Harness
	ctx  context.Context
	ids  atomic.Int64
}

// accept accepts a job and returns its id. Ids sort in the order of acceptance.
func (s *suite) accept(lane job.Lane, account string) string {
	s.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	j := job.Job{
		ID: fmt.Sprintf("job_%026d", s.ids.Add(1)), Account: account, Key: "key_0123456789ab", Model: "gen-2.5",
		Lane: lane, Status: job.Pending, CreatedAt: now, Deadline: now.Add(job.MaxAge),
	}
	conformance.OK(s, s.Store.Accept(s.ctx, j, 0))
	return j.ID
}

func (s *suite) receive(lease time.Duration) worker.Delivery {
	s.Helper()
	d, err := s.Queue.Receive(s.ctx, job.VideoLane, lease)
	conformance.OK(s, err)
	return d
}

// receiveJob receives the next video job, which must be the given one.
func (s *suite) receiveJob(id string, lease time.Duration) worker.Delivery {
	s.Helper()
	d := s.receive(lease)
	if d.JobID() != id {
		s.Fatalf("received %s, want %s", d.JobID(), id)
	}
	return d
}

func (s *suite) receiveNone(within time.Duration) {
	s.Helper()
	if d, received := s.receiveWithin(within); received {
		s.Fatalf("received %s, want none", d.JobID())
	}
}

func (s *suite) receiveWithin(within time.Duration) (d worker.Delivery, received bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, within)
	defer cancel()
	d, err := s.Queue.Receive(ctx, job.VideoLane, longLease)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		s.Fatalf("error %v, want the context's", err)
	}
	return d, err == nil
}

func (s *suite) start(id, nonce string) {
	s.Helper()
	_, err := s.Runs.Start(s.ctx, id, nonce, time.Now())
	conformance.OK(s, err)
}

func (s *suite) ended(id string) job.Job {
	s.Helper()
	for {
		j, err := s.Store.Get(s.ctx, id)
		conformance.OK(s, err)
		if j.Status.Terminal() {
			return j
		}
		select {
		case <-s.ctx.Done():
			s.Fatalf("job %s has not ended", id)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *suite) conflict(err error) {
	s.Helper()
	if !fault.Is(err, fault.Conflict) {
		s.Fatalf("error %v, want a conflict", err)
	}
}

func resultOf(id, nonce string) job.Result {
	return job.Result{Blob: job.ResultBlob(id, nonce), MIME: "video/mp4", Size: 1, SHA256: nonce, Engine: "preview", Understood: []string{}}
}

var broken = job.Failure{Code: job.EngineError, Message: "The engine could not finish the job."}
