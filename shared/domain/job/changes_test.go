package job_test

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/patience"
)

// A follower of a job sees its changes, whether it is notified or polls, and no
// change twice.
func TestChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		watched bool
	}{{"told", true}, {"polled for", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := patience.Context(t)
			db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			config := job.Config{Store: db.Jobs(), Now: time.Now, Random: rand.Reader}
			if c.watched {
				config.Watcher = db.Jobs()
			}
			service := job.NewService(config)
			j, err := service.Submit(ctx, job.Job{ID: "job_1", Account: "acme", Model: "m", Lane: job.VideoLane}, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			var seen []job.Status
			for changed, err := range service.Changes(ctx, "acme", j.ID) {
				if err != nil {
					t.Fatal(err)
				}
				seen = append(seen, changed.Status)
				// Each change is made once the one before was seen; the last
				// one changes nothing visible.
				switch len(seen) {
				case 1:
					_, err = db.Jobs().Start(ctx, j.ID, "nonce", time.Now())
				case 2:
					err = errors.Join(
						db.Jobs().Release(ctx, j.ID, "nonce"), db.Jobs().Fail(ctx, j.ID, "", job.CancelledFailure(), time.Now()),
					)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if len(seen) != 3 || seen[0] != job.Pending || seen[1] != job.Processing || seen[2] != job.Failed {
				t.Errorf("seen: %v", seen)
			}
		})
	}
}

// broken is an orchestrator that cannot be reached.
type broken struct{ told []string }

func (b *broken) Stop(_ context.Context, id string) error {
	b.told = append(b.told, id)
	return errors.New("no answer")
}

// A cancellation remains valid when the orchestrator cannot be reached, and a failed cancellation is
// not passed on to the orchestrator.
func TestCancelWithoutItsOrchestrator(t *testing.T) {
	ctx := t.Context()
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	machine := &broken{}
	service := job.NewService(job.Config{Store: db.Jobs(), Now: time.Now, Random: rand.Reader, Orchestrator: machine})
	if _, err := service.Submit(
		ctx, job.Job{ID: "job_1", Account: "acme", Model: "m", Lane: job.VideoLane}, 0, 0,
	); err != nil {
		t.Fatal(err)
	}
	if err := service.Cancel(ctx, "job_1", job.CancelledFailure()); err != nil {
		t.Fatal(err)
	}
	j, err := service.Get(ctx, "acme", "job_1")
	if err != nil || j.Status != job.Failed || *j.Failure != job.CancelledFailure() {
		t.Errorf("the job is %+v, %v", j, err)
	}
	if err := service.Cancel(ctx, "job_unknown", job.CancelledFailure()); err == nil || len(machine.told) != 1 {
		t.Errorf("an unknown job: %v; the orchestrator received %v", err, machine.told)
	}
}
