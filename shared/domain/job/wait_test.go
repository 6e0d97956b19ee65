package job_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/busytest"
	"cutroom/shared/testkit/sqlitetest"
)

func TestWaitEndsWithJob(t *testing.T) {
	ctx := t.Context()
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
	service := job.NewService(
		job.Config{Store: db.Jobs(), Now: time.Now, Random: rand.Reader, Workers: map[job.Lane]int{job.ImageLane: 1}},
	)
	submit := func() string {
		id, err := service.NewID()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := service.Submit(ctx, job.Job{ID: id, Account: "acme", Model: "m", Lane: job.ImageLane}, 0, 0); err != nil {
			t.Fatal(err)
		}
		return id
	}

	if _, err := service.Wait(ctx, "other", submit()); !fault.Is(err, fault.NotFound) {
		t.Errorf("another account's job: %v", err)
	}
	waiting := submit()
	busytest.Try(t, 50*time.Millisecond, func(limit time.Duration) error {
		short, stop := context.WithTimeout(ctx, limit)
		defer stop()
		if _, err := service.Wait(short, "acme", waiting); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("a job without a worker: %v", err)
		}
		return nil
	})

	id := submit()
	type end struct {
		j   job.Job
		err error
	}
	ends := make(chan end)
	go func() {
		j, err := service.Wait(ctx, "acme", id)
		ends <- end{j, err}
	}()
	if _, err := db.Jobs().Start(ctx, id, "nonce", time.Now()); err != nil {
		t.Fatal(err)
	}
	reason := job.Failure{Code: job.Cancelled, Message: "No longer wanted."}
	if err := service.Cancel(ctx, id, reason); err != nil {
		t.Fatal(err)
	}
	if e := <-ends; e.err != nil || e.j.Status != job.Failed || *e.j.Failure != reason {
		t.Errorf("got %+v, %v", e.j, e.err)
	}
	if err := db.Jobs().Progress(ctx, id, "nonce", 0.5); !fault.Is(err, fault.Conflict) {
		t.Errorf("the run of a cancelled job continues: %v", err)
	}
	if err := service.Cancel(
		ctx, id, job.Failure{Code: job.Cancelled, Message: "Again."},
	); !fault.Is(err, fault.Conflict) {
		t.Errorf("cancelling an ended job: %v", err)
	}
	if err := service.Cancel(ctx, "job_unknown", reason); !fault.Is(err, fault.NotFound) {
		t.Errorf("cancelling an unknown job: %v", err)
	}
}
