// Package jobtest specifies the behavior of [job.Store], [job.Runs], [job.Retention] and [job.EstimateStore].
package jobtest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/conformance"
)

// All stores of a Harness use the same records.
type Harness struct {
	Store job.Store
	Runs  job.Runs
	// Retention is nil if the platform does the sweeper's work. Its tests are then skipped.
	Retention job.Retention
	Usage     usage.Store // counts jobs from Accept and bills from Complete
	Budgets   budget.Budgets
	Estimates job.EstimateStore
	Queues    job.Queues
}

// Run calls `open` once per test. That function must register a cleanup that closes its stores.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	groups := []conformance.Group[test]{
		conformance.About("Accept", acceptTests), conformance.About("Get", getTests),
		conformance.About("Expire", expireTests), conformance.About("Backlog", backlogTests),
		conformance.About("List", listTests), conformance.About("Start", startTests),
		conformance.About("Progress", progressTests), conformance.About("Release", releaseTests),
		conformance.About("Complete", completeTests), conformance.About("Bills", billTests), conformance.About("Holds", holdTests),
		conformance.About("Fail", failTests),
		conformance.About("Ended", terminalTests), conformance.About("Forget", forgetTests), conformance.About("Races", raceTests),
		conformance.About("Retention", retentionTests), conformance.About("Estimates", estimateTests),
		conformance.About("Queues", queueTests),
	}
	conformance.Run(t, func(t *testing.T, group string, test test) {
		h := open(t)
		if group == "Retention" && h.Retention == nil {
			t.Skip("the platform does the sweeper's work")
		}
		// Use the real time, because a platform may delete old records.
		test.run(&suite{T: t, Harness: h, ctx: conformance.Context(t), now: time.Now().UTC().Truncate(time.Millisecond)})
	}, groups...)
}

type test struct {
	name string
	run  func(s *suite)
}

func (t test) Says() string { return t.name }

type suite struct {
	*testing.T
	Harness
	ctx context.Context
	now time.Time // the start of the test
	ids atomic.Int64
}

func (s *suite) at(seconds float64) time.Time {
	return s.now.Add(time.Duration(seconds * float64(time.Second)))
}

// Ids of new jobs sort by creation time.
func (s *suite) new(lane job.Lane, account string) job.Job {
	return job.Job{
		ID: fmt.Sprintf("job_%026d", s.ids.Add(1)), Account: account, Key: "key_0123456789ab",
		Model: "gen-2.5", Lane: lane, Seed: 4294967295, Status: job.Pending,
		Request: job.Request{
			Prompt:  "a heron, \"pêche\" <b>\n",
			Options: map[string]any{"resolution": "720p", "enhance_prompt": true, "frames": int64(1) << 53},
			Inputs: map[string]job.Input{
				"data": {Blob: "jobs/a/data", Name: "été.mp4", MIME: "video/mp4", Size: 5 << 30, MD5: "d41d8cd98f00b204e9800998ecf8427e"},
			},
		},
		Webhook: "https://hooks.example/jobs?of=acme", Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Estimate: 76543 * time.Millisecond, CreatedAt: s.now, Deadline: s.now.Add(job.MaxAge),
	}
}

func (s *suite) accept() job.Job {
	s.Helper()
	return s.acceptFor(job.VideoLane, "acme")
}

func (s *suite) acceptFor(lane job.Lane, account string) job.Job {
	s.Helper()
	j := s.new(lane, account)
	conformance.OK(s, s.Store.Accept(s.ctx, j, 0))
	return j
}

// acceptWithin accepts a job that must start within the given number of seconds.
func (s *suite) acceptWithin(seconds int64) job.Job {
	s.Helper()
	j := s.new(job.VideoLane, "acme")
	j.Request.Options[job.StartWithin], j.Deadline = seconds, s.at(float64(seconds))
	conformance.OK(s, s.Store.Accept(s.ctx, j, 0))
	return j
}

func (s *suite) start(id, nonce string, now time.Time) job.Job {
	s.Helper()
	j, err := s.Runs.Start(s.ctx, id, nonce, now)
	conformance.OK(s, err)
	return j
}

func (s *suite) get(id string) job.Job {
	s.Helper()
	j, err := s.Store.Get(s.ctx, id)
	conformance.OK(s, err)
	return j
}

func (s *suite) same(what string, got, want any) {
	s.Helper()
	conformance.Same(s, what, got, want)
}

func (s *suite) unchanged(before job.Job) {
	s.Helper()
	s.same("record", s.get(before.ID), before)
}

var (
	result = job.Result{
		Blob: "jobs/a/result-n1", MIME: "video/mp4", Size: 3 << 30, SHA256: "e3b0c44298fc1c149afbf4c8996fb924",
		Engine: "preview", Understood: []string{"winter", "red"}, Notice: "“a hat” was not followed.",
		Credentials: &job.Credentials{
			SourceType: "trainedAlgorithmicMedia", SignedBy: "Cutroom", SignedAt: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		},
	}
	broken = job.Failure{Code: job.EngineError, Message: "The engine could not finish the job."}
)
