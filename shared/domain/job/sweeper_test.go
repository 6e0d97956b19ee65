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
)

// A job's record and blobs over time on one machine
// (docs/contract/jobs.md#retention).
func TestSweeper(t *testing.T) {
	ctx := t.Context()
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	now := start
	clock := func() time.Time { return now }
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	blobs, err := diskblob.Open(filepath.Join(t.TempDir(), "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	jobs := db.Jobs()
	service := job.NewService(job.Config{Store: jobs, Now: clock, Random: rand.Reader})
	resultAge, recordAge := service.Ages()
	sweeper := &job.Sweeper{
		Store: jobs, Blobs: blobs, Now: clock, Logger: slog.New(slog.DiscardHandler),
		ResultAge: resultAge, RecordAge: recordAge,
	}
	names := map[string]string{}
	put := func(name string) {
		t.Helper()
		if _, err := blobs.Put(ctx, name, bytes.NewReader([]byte(name))); err != nil {
			t.Fatal(err)
		}
	}
	submit := func(call string) string {
		t.Helper()
		id, err := service.NewID()
		if err != nil {
			t.Fatal(err)
		}
		put(job.InputBlob(id, "data"))
		if _, err := service.Submit(ctx, job.Job{ID: id, Account: "acme", Model: "m", Lane: job.VideoLane}, 0); err != nil {
			t.Fatal(err)
		}
		names[id] = call
		return id
	}
	wantBlobs := func(when string, want ...string) {
		t.Helper()
		var have []string
		for entry, err := range blobs.List(ctx, "jobs") {
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(entry.Name, "jobs/")
			for id, call := range names {
				name = strings.Replace(name, id, call, 1)
			}
			have = append(have, name)
		}
		slices.Sort(have)
		if slices.Sort(want); !slices.Equal(have, want) {
			t.Errorf("%s: the blobs are %v, want %v", when, have, want)
		}
	}
	sweep := func() {
		t.Helper()
		if err := sweeper.Expire(ctx); err != nil {
			t.Fatal(err)
		}
		if err := sweeper.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
	}

	done, waiting := submit("done"), submit("waiting")
	for _, nonce := range []string{"lost", "good"} { // the first run left a result that belongs to no job
		if _, err := jobs.Start(ctx, done, nonce, now); err != nil {
			t.Fatal(err)
		}
		put(job.ResultBlob(done, nonce))
	}
	if err := jobs.Complete(
		ctx, done, "good", job.Result{Blob: job.ResultBlob(done, "good"), MIME: "video/mp4", Size: 1}, now,
	); err != nil {
		t.Fatal(err)
	}
	names["job_upload"] = "upload"
	put(job.InputBlob("job_upload", "data")) // its request is still in progress

	sweep()
	wantBlobs("one result, what waits, what is uploaded", "done/result-good", "upload/data", "waiting/data")

	now = start.Add(job.MaxAge)
	sweep()
	wantBlobs("ten minutes later nothing waits", "done/result-good", "upload/data")
	j, err := jobs.Get(ctx, waiting)
	if err != nil || j.Status != job.Failed || j.Failure.Code != job.TimedOut || !j.CompletedAt.Equal(j.Deadline) {
		t.Errorf("the job that nobody ran is %+v, %v", j, err)
	}

	if n, err := sweeper.SweepUnknown(ctx); err != nil || n != 1 {
		t.Fatalf("%d, %v", n, err)
	}
	if aside, err := blobs.ListAside(ctx); err != nil || len(aside) != 1 || path.Base(aside[0].Name) != "data" {
		t.Errorf("set aside are %+v, %v; want the broken upload", aside, err)
	}
	wantBlobs("after a start no broken upload is left", "done/result-good")

	now = start.Add(24*time.Hour - time.Second)
	sweep()
	j, err = service.Get(ctx, "acme", done)
	if err := errors.Join(err, service.CheckResult(j)); err != nil {
		t.Errorf("within its 24 hours the result is gone: %v", err)
	}
	now = start.Add(24 * time.Hour)
	if err := service.CheckResult(j); !fault.Is(err, fault.NotFound) {
		t.Errorf("after 24 hours the result returns %v, want not found", err)
	}
	sweep()
	wantBlobs("after 24 hours no result is left")
	if _, err := service.Get(ctx, "acme", done); err != nil {
		t.Errorf("the record went with the result: %v", err)
	}

	now = start.Add(7*24*time.Hour + job.MaxAge + time.Second)
	if _, err := service.Get(ctx, "acme", done); !fault.Is(err, fault.NotFound) {
		t.Errorf("after 7 days the record returns %v, want not found", err)
	}
	sweep()
	for id := range maps.Keys(names) {
		if known, err := jobs.Known(ctx, id); err != nil || known {
			t.Errorf("after 7 days the record of %s is still kept (%v)", names[id], err)
		}
	}
}
