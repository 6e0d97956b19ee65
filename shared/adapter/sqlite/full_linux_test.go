package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/disktest"
)

// fill fills the disk and returns the file that takes the space.
func fill(t *testing.T, disk string) string {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(disk, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for {
		if _, err := file.Write(make([]byte, 4096)); errors.Is(err, syscall.ENOSPC) {
			return file.Name()
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// A write that does not fit is rejected entirely. Stored data is kept, and the open database works again once space
// is free.
func TestFullDiskFailsOnlyTheWrite(t *testing.T) {
	disk := disktest.Small(t, "size=3m")
	db := openAt(t, filepath.Join(disk, "cutroom.db"))
	jobs := db.Jobs()
	kept := newJob("job_kept", "acme")
	kept.Request.Prompt = strings.Repeat("k", 4000)
	if err := jobs.Accept(t.Context(), kept, 0); err != nil {
		t.Fatal(err)
	}
	d := receive(t, db, kept.ID, time.Hour)
	if _, err := jobs.Start(t.Context(), kept.ID, "n1", time.Now()); err != nil {
		t.Fatal(err)
	}

	accepted := []job.Job{}
	for round := range 3 {
		filler := fill(t, disk)
		var refused job.Job
		for i := 0; ; i++ {
			j := newJob(fmt.Sprintf("job_%d_%d", round, i), "acme")
			j.Request.Prompt = strings.Repeat("p", 100_000)
			err := jobs.Accept(t.Context(), j, 0)
			if err == nil {
				accepted = append(accepted, j) // fits into space freed by earlier writes
				continue
			}
			var full *fault.Error
			if !errors.As(err, &full) || full.Code != fault.StorageFull || full.RetryAfter == 0 {
				t.Fatalf("accept: error %v, want one of a full store with a time to retry", err)
			}
			refused = j
			break
		}
		if _, err := jobs.Get(t.Context(), refused.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("the rejected job: error %v, want not found", err)
		}
		if j, err := jobs.Get(t.Context(), kept.ID); err != nil || j.Request.Prompt != kept.Request.Prompt {
			t.Errorf("the earlier job: %v", err)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if err := jobs.Accept(t.Context(), refused, 0); err != nil {
			t.Fatalf("accept after space was freed: %v", err)
		}
		accepted = append(accepted, refused)
		if err := jobs.Progress(t.Context(), kept.ID, "n1", float64(round+1)/4); err != nil {
			t.Fatalf("progress after space was freed: %v", err)
		}
		// End the accepted jobs, so that the next round has the same space.
		for _, j := range accepted {
			if err := jobs.Fail(t.Context(), j.ID, "", job.TimeoutFailure(), time.Now()); err != nil {
				t.Fatal(err)
			}
			if err := jobs.Forget(t.Context(), j.ID); err != nil {
				t.Fatal(err)
			}
		}
		accepted = accepted[:0]
	}
	if err := d.Complete(t.Context(), "n1", job.Result{Blob: "a"}); err != nil {
		t.Fatal(err)
	}
}

func TestFullDiskIsReportedAtOpen(t *testing.T) {
	disk := disktest.Small(t, "size=1m")
	fill(t, disk)
	_, err := sqlite.Open(t.Context(), filepath.Join(disk, "cutroom.db"), sqlite.Options{Now: time.Now})
	if !fault.Is(err, fault.StorageFull) {
		t.Errorf("error %v, want StorageFull", err)
	}
}
