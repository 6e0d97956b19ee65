package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// TestFullDatabase lets the file reach a size limit, which SQLite reports like a
// full disk, on every system and without privileges.
func TestFullDatabase(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"))
	limit := func(pages string) {
		if _, err := db.writer.ExecContext(t.Context(), "pragma max_page_count = "+pages); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	j := job.Job{
		ID: "job_1", Account: "acme", Lane: job.VideoLane, CreatedAt: now, Deadline: now.Add(job.MaxAge),
		Request: job.Request{Prompt: strings.Repeat("p", 1<<20)},
	}
	limit("100")
	err := db.Jobs().Accept(t.Context(), j, 0)
	if !fault.Is(err, fault.StorageFull) {
		t.Fatalf("error %v, want one of a full store", err)
	}
	if known, err := db.Jobs().Known(t.Context(), j.ID); known || err != nil {
		t.Errorf("known %v, %v; want that the job was refused whole", known, err)
	}
	limit("100000")
	if err := db.Jobs().Accept(t.Context(), j, 0); err != nil {
		t.Errorf("accept once there is room: %v", err)
	}
}
