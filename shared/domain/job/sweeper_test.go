package job_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/sqlitetest"
)

// sweepWorld is a one-machine service with a settable clock.
type sweepWorld struct {
	t       *testing.T
	now     time.Time
	db      *sqlite.DB
	jobs    *sqlite.Jobs
	blobs   *diskblob.Store
	service *job.Service
	sweeper *job.Sweeper
	// names maps job ids to the names used in the test.
	names map[string]string
}

func newSweepWorld(t *testing.T) *sweepWorld {
	w := &sweepWorld{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), names: map[string]string{}}
	clock := func() time.Time { return w.now }
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: clock})
	var err error
	if w.blobs, err = diskblob.Open(filepath.Join(t.TempDir(), "blobs")); err != nil {
		t.Fatal(err)
	}
	w.db, w.jobs = db, db.Jobs()
	w.service = job.NewService(job.Config{Store: w.jobs, Now: clock, Random: rand.Reader})
	resultAge, recordAge := w.service.Ages()
	w.sweeper = &job.Sweeper{
		Store: w.jobs, Blobs: w.blobs, Now: clock, Logger: slog.New(slog.DiscardHandler),
		ResultAge: resultAge, RecordAge: recordAge,
	}
	return w
}

func (w *sweepWorld) put(name string) {
	w.t.Helper()
	if _, err := w.blobs.Put(w.t.Context(), name, bytes.NewReader([]byte(name))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *sweepWorld) submit(name string, options map[string]any) string {
	w.t.Helper()
	id, err := w.service.NewID()
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(job.InputBlob(id, "data"))
	submitted := job.Job{ID: id, Account: "acme", Model: "m", Lane: job.VideoLane, Request: job.Request{Options: options}}
	if _, err := w.service.Submit(w.t.Context(), submitted, 0, 0); err != nil {
		w.t.Fatal(err)
	}
	w.names[id] = name
	return id
}

// complete completes the job in its second run. The first run left a stray result behind.
func (w *sweepWorld) complete(id string) {
	w.t.Helper()
	ctx := w.t.Context()
	for _, nonce := range []string{"lost", "good"} {
		if _, err := w.jobs.Start(ctx, id, nonce, w.now); err != nil {
			w.t.Fatal(err)
		}
		w.put(job.ResultBlob(id, nonce))
	}
	result := job.Result{Blob: job.ResultBlob(id, "good"), MIME: "video/mp4", Size: 1}
	if err := w.jobs.Complete(ctx, id, "good", result, w.now); err != nil {
		w.t.Fatal(err)
	}
}

func (w *sweepWorld) sweep() {
	w.t.Helper()
	if err := errors.Join(w.sweeper.Expire(w.t.Context()), w.sweeper.Sweep(w.t.Context())); err != nil {
		w.t.Fatal(err)
	}
}

func (w *sweepWorld) wantBlobs(when string, want ...string) {
	w.t.Helper()
	var have []string
	for entry, err := range w.blobs.List(w.t.Context(), "jobs") {
		if err != nil {
			w.t.Fatal(err)
		}
		name := strings.TrimPrefix(entry.Name, "jobs/")
		for id, given := range w.names {
			name = strings.Replace(name, id, given, 1)
		}
		have = append(have, name)
	}
	slices.Sort(have)
	if slices.Sort(want); !slices.Equal(have, want) {
		w.t.Errorf("%s: the blobs are %v, want %v", when, have, want)
	}
}

func TestResultExpiresAfterRequestedTime(t *testing.T) {
	w := newSweepWorld(t)
	start := w.now
	brief := w.submit("brief", map[string]any{job.ResultTTL: int64(60)})
	w.complete(brief)
	check := func(after time.Duration, blobs ...string) {
		t.Helper()
		w.now = start.Add(after)
		j, err := w.service.Get(t.Context(), "acme", brief)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.service.CheckResult(j); (err == nil) != (len(blobs) > 0) || err != nil && !fault.Is(err, fault.NotFound) {
			t.Errorf("after %v, reading the result: %v", after, err)
		}
		w.sweep()
		w.wantBlobs(after.String(), blobs...)
	}
	check(59*time.Second, "brief/result-good")
	check(60 * time.Second)
}

// See docs/contract/jobs.md#retention.
func TestSweeperFollowsRetention(t *testing.T) {
	ctx := t.Context()
	w := newSweepWorld(t)
	start := w.now
	done, waiting := w.submit("done", nil), w.submit("waiting", nil)
	w.complete(done)
	w.names["job_upload"] = "upload"
	w.put(job.InputBlob("job_upload", "data")) // the request that creates this job is still in progress

	w.sweep()
	w.wantBlobs("after the first sweep", "done/result-good", "upload/data", "waiting/data")

	w.now = start.Add(job.MaxAge)
	w.sweep()
	w.wantBlobs("after ten minutes", "done/result-good", "upload/data")
	j, err := w.jobs.Get(ctx, waiting)
	if err != nil || j.Status != job.Failed || j.Failure.Code != job.TimedOut || !j.CompletedAt.Equal(j.Deadline) {
		t.Errorf("the job without a run is %+v, %v", j, err)
	}

	if n, err := w.sweeper.SweepUnknown(ctx); err != nil || n != 1 {
		t.Fatalf("got %d, %v", n, err)
	}
	if aside, err := w.blobs.ListAside(ctx); err != nil || len(aside) != 1 || path.Base(aside[0].Name) != "data" {
		t.Errorf("set aside: %+v, %v; want the broken upload", aside, err)
	}
	w.wantBlobs("after a restart", "done/result-good")

	w.now = start.Add(24*time.Hour - time.Second)
	w.sweep()
	j, err = w.service.Get(ctx, "acme", done)
	if err := errors.Join(err, w.service.CheckResult(j)); err != nil {
		t.Errorf("the result is gone within 24 hours: %v", err)
	}
	w.now = start.Add(24 * time.Hour)
	if err := w.service.CheckResult(j); !fault.Is(err, fault.NotFound) {
		t.Errorf("the result returns %v after 24 hours, want not found", err)
	}
	w.sweep()
	w.wantBlobs("after 24 hours")
	if _, err := w.service.Get(ctx, "acme", done); err != nil {
		t.Errorf("the record was deleted with the result: %v", err)
	}

	w.now = start.Add(7*24*time.Hour + job.MaxAge + time.Second)
	if _, err := w.service.Get(ctx, "acme", done); !fault.Is(err, fault.NotFound) {
		t.Errorf("the record returns %v after 7 days, want not found", err)
	}
	w.sweep()
	for id := range maps.Keys(w.names) {
		if known, err := w.jobs.Known(ctx, id); err != nil || known {
			t.Errorf("the record of %s is still kept after 7 days (%v)", w.names[id], err)
		}
	}
}
