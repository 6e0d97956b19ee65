package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/sqlitetest"
)

func newJob(id, account string) job.Job {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return job.Job{
		ID: id, Account: account, Key: "key_0123456789ab", Model: "gen-2.5", Lane: job.VideoLane,
		Status: job.Pending, CreatedAt: now, Deadline: now.Add(job.MaxAge), Request: job.Request{Length: time.Second},
	}
}

func accept(t *testing.T, db *sqlite.DB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := db.Jobs().Accept(t.Context(), newJob(id, "acme"), 0); err != nil {
			t.Fatal(err)
		}
	}
}

func receive(t *testing.T, db *sqlite.DB, id string, lease time.Duration) worker.Delivery {
	t.Helper()
	ctx := await.Context(t)
	d, err := db.Queue().Receive(ctx, job.VideoLane, lease)
	if err != nil {
		t.Fatal(err)
	}
	if d.JobID() != id {
		t.Fatalf("received %s, want %s", d.JobID(), id)
	}
	return d
}

func receiveNone(t *testing.T, db *sqlite.DB) {
	t.Helper()
	d, err := db.Queue().TryReceive(t.Context(), job.VideoLane, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if d != nil {
		t.Fatalf("received %s, want none", d.JobID())
	}
}

func TestLowPriorityWaitsForAllNormalJobs(t *testing.T) {
	db := open(t)
	for _, id := range []string{"low_1", "low_2", "normal_1", "normal_2"} {
		j := newJob(id, "acme")
		if strings.HasPrefix(id, "low") {
			j.Request.Options = map[string]any{job.Priority: job.LowPriority}
		}
		if err := db.Jobs().Accept(t.Context(), j, 0); err != nil {
			t.Fatal(err)
		}
	}
	// The account has a lease, so without the priority the other account's low job would be next.
	other := newJob("low_3", "zoo")
	other.Request.Options = map[string]any{job.Priority: job.LowPriority}
	if err := db.Jobs().Accept(t.Context(), other, 0); err != nil {
		t.Fatal(err)
	}
	held := receive(t, db, "normal_1", time.Hour)
	queue, err := db.Jobs().Queue(t.Context(), job.VideoLane)
	own, errOwn := db.Jobs().Own(t.Context(), newJob("normal_2", "acme"))
	if err := errors.Join(err, errOwn); err != nil || queue.Waiting != 1 || queue.Running != 1 || own.Before != 1 {
		t.Errorf("the queue of normal jobs is %+v, own %+v, %v", queue, own, err)
	}
	receive(t, db, "normal_2", time.Hour)
	backlog, err := db.Jobs().Backlog(t.Context(), job.VideoLane, "acme")
	if err != nil || backlog.Jobs != 5 || backlog.Low != 3 || backlog.AccountJobs != 4 || backlog.AccountLow != 2 {
		t.Errorf("the backlog is %+v, %v", backlog, err)
	}
	receive(t, db, "low_3", time.Hour)
	if queue, err = db.Jobs().Queue(t.Context(), job.VideoLane); err != nil || queue.Waiting != 0 || queue.Running != 3 {
		t.Errorf("with a running low job, the queue is %+v, %v", queue, err)
	}
	if err := held.Nack(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	receive(t, db, "normal_1", time.Hour)
	receive(t, db, "low_1", time.Hour)
	receive(t, db, "low_2", time.Hour)
}

func TestLeasesOfDeadProcessesAreRecovered(t *testing.T) {
	db := open(t)
	accept(t, db, "job_1", "job_2", "job_3")
	receive(t, db, "job_1", time.Hour)
	if err := receive(t, db, "job_2", time.Hour).Nack(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := db.Queue().RecoverLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"job_1", "job_2", "job_3"} {
		receive(t, db, id, time.Hour)
	}
	receiveNone(t, db)
}

func TestRecoveryWakesWaitingReceivers(t *testing.T) {
	db := open(t)
	accept(t, db, "job_1")
	receive(t, db, "job_1", time.Hour)
	got := make(chan error, 1)
	go func() {
		_, err := db.Queue().Receive(t.Context(), job.VideoLane, time.Hour)
		got <- err
	}()
	if err := db.Queue().RecoverLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

func TestLostLeaseCannotBeUsed(t *testing.T) {
	db := open(t)
	accept(t, db, "job_1")
	lost := receive(t, db, "job_1", time.Millisecond)
	held := receive(t, db, "job_1", time.Hour)
	if err := lost.Extend(t.Context(), 0); !fault.Is(err, fault.Conflict) {
		t.Errorf("extend: error %v, want a conflict", err)
	}
	if err := lost.Nack(t.Context(), 0); err != nil {
		t.Errorf("return: %v", err)
	}
	receiveNone(t, db)
	if err := held.Extend(t.Context(), time.Minute); err != nil {
		t.Errorf("extend: %v", err)
	}
	if err := held.Nack(t.Context(), 0); err != nil {
		t.Errorf("return: %v", err)
	}
	if err := held.Extend(t.Context(), time.Hour); !fault.Is(err, fault.Conflict) {
		t.Errorf("extend of a returned job: error %v, want a conflict", err)
	}
	receive(t, db, "job_1", time.Hour)
}

func TestExpiredLeaseCanBeExtendedUntilJobIsTaken(t *testing.T) {
	db := open(t)
	accept(t, db, "job_1")
	d := receive(t, db, "job_1", time.Nanosecond)
	if err := d.Extend(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	receiveNone(t, db)
}

func TestEndOfJobDeletesItsMessage(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, jobs *sqlite.Jobs, j job.Job) error{
		"expired": func(ctx context.Context, jobs *sqlite.Jobs, j job.Job) error {
			_, err := jobs.Expire(ctx, j.ID, j.Deadline)
			return err
		},
		"cancelled": func(ctx context.Context, jobs *sqlite.Jobs, j job.Job) error {
			return jobs.Fail(ctx, j.ID, "", job.Failure{Code: job.Cancelled, Message: "Cancelled."}, j.CreatedAt)
		},
		"completed": func(ctx context.Context, jobs *sqlite.Jobs, j job.Job) error {
			if _, err := jobs.Start(ctx, j.ID, "n1", j.CreatedAt); err != nil {
				return err
			}
			return jobs.Complete(ctx, j.ID, "n1", job.Result{Blob: "a"}, j.CreatedAt)
		},
	} {
		for _, leased := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, leased %v", name, leased), func(t *testing.T) {
				db := open(t)
				j := newJob("job_1", "acme")
				if err := db.Jobs().Accept(t.Context(), j, 0); err != nil {
					t.Fatal(err)
				}
				var d worker.Delivery
				if leased {
					d = receive(t, db, j.ID, time.Hour)
				}
				if err := end(t.Context(), db.Jobs(), j); err != nil {
					t.Fatal(err)
				}
				if leased {
					if err := d.Extend(t.Context(), time.Hour); !fault.Is(err, fault.Conflict) {
						t.Errorf("extend: error %v, want a conflict", err)
					}
					if err := d.Drop(t.Context()); err != nil {
						t.Errorf("drop: %v", err)
					}
				}
				if err := db.Queue().RecoverLeases(t.Context()); err != nil {
					t.Fatal(err)
				}
				receiveNone(t, db)
			})
		}
	}
}

// The run time is estimated from the last 20 completed jobs, at most five per account.
func TestRunTimeFollowsTheLatestRuns(t *testing.T) {
	db := open(t)
	jobs := db.Jobs()
	ended := 0
	end := func(count int, end func(j job.Job) error) {
		for range count {
			ended++
			j := newJob(fmt.Sprintf("job_%03d", ended), fmt.Sprint("account", ended%4))
			j.CreatedAt = j.CreatedAt.Add(time.Duration(ended) * time.Minute)
			j.Deadline = j.CreatedAt.Add(job.MaxAge)
			if err := jobs.Accept(t.Context(), j, 0); err != nil {
				t.Fatal(err)
			}
			if err := end(j); err != nil {
				t.Fatal(err)
			}
		}
	}
	complete := func(after time.Duration) func(j job.Job) error {
		return func(j job.Job) error {
			if _, err := jobs.Start(t.Context(), j.ID, "n1", j.CreatedAt); err != nil {
				return err
			}
			return jobs.Complete(t.Context(), j.ID, "n1", job.Result{Blob: "a"}, j.CreatedAt.Add(after))
		}
	}
	for _, step := range []struct {
		what  string
		count int
		end   func(j job.Job) error
		want  time.Duration
	}{
		{"runs of 9 s", 20, complete(9 * time.Second), 9 * time.Second},
		{"runs of 1 s", 10, complete(time.Second), 5 * time.Second},
		{"failures after 5 minutes", 10, func(j job.Job) error {
			if _, err := jobs.Start(t.Context(), j.ID, "n1", j.CreatedAt); err != nil {
				return err
			}
			return jobs.Fail(t.Context(), j.ID, "n1", job.WorkerLostFailure(), j.CreatedAt.Add(5*time.Minute))
		}, 5 * time.Second},
		{"timeouts after 10 minutes", 20, func(j job.Job) error {
			if _, err := jobs.Start(t.Context(), j.ID, "n1", j.CreatedAt); err != nil {
				return err
			}
			return jobs.Fail(t.Context(), j.ID, "n1", job.TimeoutFailure(), j.Deadline)
		}, 5 * time.Second},
		{"runs of 2 s", 20, complete(2 * time.Second), 2 * time.Second},
	} {
		end(step.count, step.end)
		backlog, err := jobs.Backlog(t.Context(), job.VideoLane, "acme")
		if err != nil {
			t.Fatal(err)
		}
		if backlog.RunTime != step.want {
			t.Errorf("after %d %s the run time is %v, want %v", step.count, step.what, backlog.RunTime, step.want)
		}
	}
}

// Runs that share a worker with runs in spare slots are slower than the worker. Runs that have not ended also share it.
func TestRunTimeLeavesOutSharingOfWorkers(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "a.db"), sqlite.Options{
		Now: func() time.Time { return now }, AccountLeases: 1,
	})
	start := func(id string) {
		t.Helper()
		if err := db.Jobs().Accept(t.Context(), newJob(id, id), 0); err != nil {
			t.Fatal(err)
		}
		receive(t, db, id, time.Hour)
		if _, err := db.Jobs().Start(t.Context(), id, "n1", now); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, want ...time.Duration) {
		t.Helper()
		queue, err := db.Jobs().Queue(t.Context(), job.VideoLane)
		var took []time.Duration
		for _, run := range queue.Runs {
			took = append(took, run.Took)
		}
		slices.Sort(took)
		if err != nil || !slices.Equal(took, want) {
			t.Errorf("%s: run times %v, want %v (%v)", what, took, want, err)
		}
	}
	complete := func(id string) {
		t.Helper()
		if err := db.Jobs().Complete(t.Context(), id, "n1", job.Result{Blob: "a"}, now); err != nil {
			t.Fatal(err)
		}
	}
	start("alone")
	now = now.Add(2 * time.Second)
	complete("alone")
	check("one at a time", 2*time.Second)

	start("first")
	start("second")
	start("third")
	now = now.Add(6 * time.Second)
	complete("first")
	check("while two of three are still running", 2*time.Second, 2*time.Second)
	complete("second")
	complete("third")
	now = now.Add(time.Minute)
	start("later")
	check("after three at a time", 2*time.Second, 2*time.Second, 2*time.Second, 2*time.Second)
}

// An account gets no second lease if there are already as many running jobs as workers.
func TestSecondLeasesLeaveSpareSlots(t *testing.T) {
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "a.db"), sqlite.Options{Now: time.Now, AccountLeases: 2})
	accept(t, db, "job_1", "job_2", "job_3")
	receive(t, db, "job_1", time.Hour)
	receive(t, db, "job_2", time.Hour)
	for _, id := range []string{"job_4", "job_5"} {
		if err := db.Jobs().Accept(t.Context(), newJob(id, "rival"), 0); err != nil {
			t.Fatal(err)
		}
	}
	receive(t, db, "job_4", time.Hour)
	receiveNone(t, db)
	// Brief jobs do not keep long ones waiting, but at most two long ones run. A brief job then overtakes a long one of its
	// account.
	for _, id := range []string{"job_6", "job_7", "job_8", "job_9"} {
		j := newJob(id, id)
		if j.Request.Length = time.Minute; id == "job_9" {
			j = newJob(id, "job_8")
			time.Sleep(2 * time.Millisecond) // so that it is the later one
		}
		if err := db.Jobs().Accept(t.Context(), j, 0); err != nil {
			t.Fatal(err)
		}
		if id == "job_8" {
			receiveNone(t, db)
			continue
		}
		receive(t, db, id, time.Hour)
	}
}

// The limit also applies to suspected jobs.
func TestOneAccountCannotHaveAllLeases(t *testing.T) {
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "a.db"), sqlite.Options{Now: time.Now, AccountLeases: 1})
	accept(t, db, "job_1", "job_2", "job_3")
	first := receive(t, db, "job_1", time.Hour)
	receiveNone(t, db)
	if err := db.Jobs().Accept(t.Context(), newJob("job_4", "other"), 0); err != nil {
		t.Fatal(err)
	}
	receive(t, db, "job_4", time.Hour)
	backlog, err := db.Jobs().Backlog(t.Context(), job.VideoLane, "acme")
	if err != nil || backlog.Running != 2 {
		t.Errorf("%d jobs run, want 2 (%v)", backlog.Running, err)
	}
	if err := first.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := receive(t, db, "job_2", time.Hour)
	if _, err := db.Jobs().Start(t.Context(), second.JobID(), "nonce", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := db.Queue().RecoverLeases(t.Context()); err != nil { // as after a crash
		t.Fatal(err)
	}
	received := map[string]bool{}
	for range 2 {
		d, err := db.Queue().TryReceive(t.Context(), job.VideoLane, time.Hour)
		if err != nil || d == nil {
			t.Fatalf("received %v, %v after %v", d, err, received)
		}
		received[d.JobID()] = true
	}
	if !received["job_4"] {
		t.Errorf("received %v, want job_4 and a job of acme", received)
	}
	receiveNone(t, db)
}
