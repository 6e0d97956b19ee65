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
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/sqlitetest"
)

// A client that follows a job sees each change once, whether it is notified or polls.
func TestChangesAreSeenOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		watched bool
	}{{"notified", true}, {"polled", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := await.Context(t)
			db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
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
				// Each change follows after the previous one has been seen. In the last case there are two changes,
				// and only the second is visible.
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

type broken struct{ stopped []string }

func (b *broken) Stop(_ context.Context, id string) error {
	b.stopped = append(b.stopped, id)
	return errors.New("no response")
}

// If the orchestrator fails during a cancellation, the job is still cancelled.
func TestCancelSurvivesOrchestratorFailure(t *testing.T) {
	ctx := t.Context()
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
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
	if err := service.Cancel(ctx, "job_unknown", job.CancelledFailure()); err == nil || len(machine.stopped) != 1 {
		t.Errorf("an unknown job: %v; the orchestrator received %v", err, machine.stopped)
	}
}
