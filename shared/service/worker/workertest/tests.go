package workertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/conformance"
)

type received struct {
	delivery worker.Delivery
	err      error
}

func (s *suite) receiving(ctx context.Context, lane job.Lane) <-chan received {
	answer := make(chan received, 1)
	go func() {
		d, err := s.Queue.Receive(ctx, lane, longLease)
		answer <- received{d, err}
	}()
	return answer
}

var receiveTests = []test{
	{"returns an accepted job", func(s *suite) {
		s.receiveJob(s.accept(job.VideoLane, "acme"), longLease)
	}},
	{"returns every job", func(s *suite) {
		want := map[string]bool{}
		for range 5 {
			want[s.accept(job.VideoLane, "acme")] = true
		}
		for range 5 {
			delete(want, s.receive(longLease).JobID())
		}
		if len(want) > 0 {
			s.Fatalf("not received: %v", want)
		}
	}},
	{"waits until there is a job", func(s *suite) {
		answer := s.receiving(s.ctx, job.VideoLane)
		id := s.accept(job.VideoLane, "acme")
		got := <-answer
		conformance.OK(s, got.err)
		if got.delivery.JobID() != id {
			s.Fatalf("received %s, want %s", got.delivery.JobID(), id)
		}
	}},
	{"fails if the context has already ended", func(s *suite) {
		s.accept(job.VideoLane, "acme")
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		if _, err := s.Queue.Receive(ctx, job.VideoLane, longLease); !errors.Is(err, context.Canceled) {
			s.Fatalf("error %v, want the context's", err)
		}
		s.receive(longLease) // the failed call has not taken the job
	}},
	{"fails when the context ends while it waits", func(s *suite) {
		ctx, cancel := context.WithCancel(s.ctx)
		answer := s.receiving(ctx, job.VideoLane)
		cancel()
		if got := <-answer; !errors.Is(got.err, context.Canceled) {
			s.Fatalf("error %v, want the context's", got.err)
		}
	}},
	{"separates lanes", func(s *suite) {
		image := s.accept(job.ImageLane, "acme")
		video := s.accept(job.VideoLane, "acme")
		s.receiveJob(video, longLease)
		s.receiveNone(shortLease)
		d, err := s.Queue.Receive(s.ctx, job.ImageLane, longLease)
		conformance.OK(s, err)
		if d.JobID() != image {
			s.Fatalf("received %s, want %s", d.JobID(), image)
		}
	}},
	{"delivers each job to only one worker", func(s *suite) {
		const jobs, workers = 30, 6
		for i := range jobs {
			s.accept(job.VideoLane, fmt.Sprint("account", i%3))
		}
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		ids := make(chan string, jobs+workers)
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for {
					d, err := s.Queue.Receive(ctx, job.VideoLane, longLease)
					if err != nil {
						return
					}
					ids <- d.JobID()
				}
			})
		}
		seen := map[string]bool{}
		for len(seen) < jobs {
			select {
			case id := <-ids:
				if seen[id] {
					s.Errorf("%s was received twice", id)
				}
				seen[id] = true
			case <-s.ctx.Done():
				s.Fatalf("received %d of %d jobs", len(seen), jobs)
			}
		}
		cancel()
		all.Wait()
		if len(ids) > 0 {
			s.Errorf("%s was received twice", <-ids)
		}
	}},
}

// order receives all jobs and returns their accounts in the order served. If finish is set, each
// job is settled before the next one is received.
func (s *suite) order(accounts map[string]string, finish bool) []string {
	s.Helper()
	var served []string
	for range len(accounts) {
		d := s.receive(longLease)
		served = append(served, accounts[d.JobID()])
		if finish {
			conformance.OK(s, d.Fail(s.ctx, "", broken))
		}
	}
	return served
}

func (s *suite) acceptAll(accounts ...string) map[string]string {
	s.Helper()
	of := map[string]string{}
	for _, account := range accounts {
		of[s.accept(job.VideoLane, account)] = account
	}
	return of
}

var fairnessTests = []test{
	{"serves an account's first job before another's second", func(s *suite) {
		for _, finish := range []bool{false, true} {
			accounts := s.acceptAll("many", "many", "many", "many", "few")
			served := s.order(accounts, finish)
			if served[0] != "few" && served[1] != "few" {
				s.Errorf("served %v: few waited for more than one of many's", served)
			}
		}
	}},
	{"serves accounts in turn", func(s *suite) {
		served := s.order(s.acceptAll("a", "a", "a", "b", "b", "b", "c", "c", "c"), true)
		for round := range 3 {
			in := map[string]bool{}
			for _, account := range served[3*round : 3*round+3] {
				in[account] = true
			}
			if len(in) != 3 {
				s.Fatalf("served %v: an account was served twice in one round", served)
			}
		}
	}},
	{"serves the account with the fewest leased jobs", func(s *suite) {
		busy := s.acceptAll("busy", "busy", "busy")
		s.order(busy, false)
		s.acceptAll("busy")
		idle := s.acceptAll("idle", "idle")
		for range 2 {
			d := s.receive(longLease)
			if idle[d.JobID()] == "" {
				s.Fatal("served the account with three leased jobs before the one with fewer")
			}
		}
	}},
	{"does not count settled leases", func(s *suite) {
		s.order(s.acceptAll("busy", "busy", "busy"), true)
		served := s.order(s.acceptAll("busy", "idle", "idle"), false)
		if served[0] != "idle" || served[1] != "busy" {
			s.Fatalf("served %v, want idle, busy, idle", served)
		}
	}},
	{"serves an account's oldest job first", func(s *suite) {
		first := s.accept(job.VideoLane, "acme")
		second := s.accept(job.VideoLane, "acme")
		conformance.OK(s, s.receiveJob(first, longLease).Nack(s.ctx, 0))
		s.receiveJob(first, longLease)
		s.receiveJob(second, longLease)
	}},
}

var leaseTests = []test{
	{"keeps a job from other workers", func(s *suite) {
		s.accept(job.VideoLane, "acme")
		s.receive(longLease)
		s.receiveNone(shortLease)
	}},
	{"ends, and another worker receives the job", func(s *suite) {
		id := s.accept(job.VideoLane, "acme")
		s.receiveJob(id, shortLease)
		s.receiveJob(id, longLease)
	}},
	{"lasts for the time of its extension", func(s *suite) {
		id := s.accept(job.VideoLane, "acme")
		conformance.OK(s, s.receiveJob(id, shortLease).Extend(s.ctx, longLease))
		s.receiveNone(aWhile)
	}},
	{"can be extended repeatedly", func(s *suite) {
		for lease := 2 * shortLease; !s.extends(lease); lease *= 2 {
			s.Logf("the machine stalled for a lease of %v", lease)
			s.Harness = s.open()
		}
	}},
	{"can be made shorter", func(s *suite) {
		id := s.accept(job.VideoLane, "acme")
		conformance.OK(s, s.receiveJob(id, longLease).Extend(s.ctx, shortLease))
		s.receiveJob(id, longLease)
	}},
}

// extends checks that no other worker receives a job while its lease is being extended. It returns
// false if the lease may have expired because the machine stalled.
func (s *suite) extends(lease time.Duration) bool {
	s.Helper()
	id := s.accept(job.VideoLane, "acme")
	sent := time.Now()
	d := s.receiveJob(id, lease)
	for range 6 {
		_, other := s.receiveWithin(lease / 4)
		next := time.Now()
		err := d.Extend(s.ctx, lease)
		if time.Since(sent) >= lease {
			return false
		}
		if other {
			s.Fatal("another worker received the job")
		}
		conformance.OK(s, err)
		sent = next
	}
	s.start(id, "n1")
	conformance.OK(s, d.Complete(s.ctx, "n1", resultOf(id, "n1")))
	s.ended(id)
	return true
}

var settleTests = []test{
	{"by Complete ends the job with its result", func(s *suite) {
		id := s.accept(job.VideoLane, "acme")
		d := s.receiveJob(id, shortLease)
		s.start(id, "n1")
		conformance.OK(s, d.Complete(s.ctx, "n1", resultOf(id, "n1")))
		if j := s.ended(id); j.Status != job.Completed || !reflect.DeepEqual(*j.Result, resultOf(id, "n1")) {
			s.Errorf("job is %s with result %+v", j.Status, j.Result)
		}
		s.receiveNone(aWhile)
	}},
	{"by Complete twice succeeds", func(s *suite) {
		id := s.accept(job.VideoLane, "acme")
		d := s.receiveJob(id, longLease)
		s.start(id, "n1")
		conformance.OK(s, d.Complete(s.ctx, "n1", resultOf(id, "n1")))
		s.ended(id)
		conformance.OK(s, d.Complete(s.ctx, "n1", resultOf(id, "n1")))
	}},
	{"by Fail ends the job with the failure", func(s *suite) {
		id := s.accept(job.VideoLane, "acme")
		d := s.receiveJob(id, shortLease)
		s.start(id, "n1")
		conformance.OK(s, d.Fail(s.ctx, "n1", broken))
		if j := s.ended(id); j.Status != job.Failed || *j.Failure != broken {
			s.Errorf("job is %s with failure %+v", j.Status, j.Failure)
		}
		s.receiveNone(aWhile)
	}},
	{"by Fail without a nonce ends the job in any run", func(s *suite) {
		id := s.accept(job.VideoLane, "acme")
		d := s.receiveJob(id, shortLease)
		s.start(id, "another's")
		conformance.OK(s, d.Fail(s.ctx, "", job.WorkerLostFailure()))
		if j := s.ended(id); j.Status != job.Failed || j.Failure.Code != job.WorkerLost {
			s.Errorf("job is %s with failure %+v", j.Status, j.Failure)
		}
		s.receiveNone(aWhile)
	}},
	{"by Nack makes the job available to another worker", func(s *suite) {
		id := s.accept(job.VideoLane, "acme")
		answered := s.receiveJob(id, longLease)
		waiting := s.receiving(s.ctx, job.VideoLane)
		conformance.OK(s, answered.Nack(s.ctx, 0))
		got := <-waiting
		conformance.OK(s, got.err)
		if got.delivery.JobID() != id {
			s.Fatalf("received %s, want %s", got.delivery.JobID(), id)
		}
		j, err := s.Store.Get(s.ctx, id)
		conformance.OK(s, err)
		if j.Status != job.Pending || j.Runs != 0 {
			s.Errorf("job is %s after %d runs, want it unchanged", j.Status, j.Runs)
		}
	}},
	{"by Nack makes the job available only after the delay", func(s *suite) {
		id := s.accept(job.VideoLane, "acme")
		d := s.receiveJob(id, longLease)
		sent := time.Now()
		conformance.OK(s, d.Nack(s.ctx, 2*shortLease))
		s.receiveJob(id, longLease)
		if after := time.Since(sent); after < 2*shortLease {
			s.Errorf("received after %v", after)
		}
	}},
	{"by Drop leaves the job unchanged and removes it from the queue", func(s *suite) {
		id := s.accept(job.VideoLane, "acme")
		d := s.receiveJob(id, shortLease)
		conformance.OK(s, d.Drop(s.ctx))
		s.receiveNone(aWhile)
		j, err := s.Store.Get(s.ctx, id)
		conformance.OK(s, err)
		if j.Status != job.Pending {
			s.Errorf("job is %s", j.Status)
		}
	}},
	{"is rejected for a run that has lost the job", func(s *suite) {
		id := s.accept(job.VideoLane, "acme")
		first := s.receiveJob(id, shortLease)
		s.start(id, "n1")
		second := s.receiveJob(id, longLease)
		s.start(id, "n2")
		s.conflict(first.Complete(s.ctx, "n1", resultOf(id, "n1")))
		s.conflict(first.Fail(s.ctx, "n1", broken))
		conformance.OK(s, second.Complete(s.ctx, "n2", resultOf(id, "n2")))
		if j := s.ended(id); j.Status != job.Completed || !reflect.DeepEqual(*j.Result, resultOf(id, "n2")) {
			s.Errorf("job is %s with result %+v", j.Status, j.Result)
		}
	}},
	{"is rejected for an ended job and removes it from the queue", func(s *suite) {
		settle := map[string]func(d worker.Delivery) error{
			"Complete": func(d worker.Delivery) error { return d.Complete(s.ctx, "n1", resultOf(d.JobID(), "n1")) },
			"Fail":     func(d worker.Delivery) error { return d.Fail(s.ctx, "n1", broken) },
		}
		for _, settle := range settle {
			id := s.accept(job.VideoLane, "acme")
			d := s.receiveJob(id, shortLease)
			s.start(id, "n1")
			conformance.OK(s, s.Runs.Fail(s.ctx, id, "", job.Failure{Code: job.Cancelled, Message: "Cancelled."}, time.Now()))
			s.conflict(settle(d))
		}
		s.receiveNone(aWhile)
	}},
}
