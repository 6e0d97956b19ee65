package filled_test

import (
	"path/filepath"
	"testing"
	"time"

	"cutroom/bench/filled"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
)

func TestWrittenRecordsAreReadable(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "cutroom.db"), time.Now()
	for _, part := range [][2]int{{0, 2000}, {2000, 3000}} {
		if err := filled.Write(t.Context(), path, filled.Service{From: part[0], Count: part[1], Now: now},
			filled.Files{Account: "many", From: part[0], Count: part[1], Now: now}); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := sqlite.Inspect(t.Context(), path, time.Minute); err != nil || !found.Complete {
		t.Errorf("the database: %+v, %v", found, err)
	}
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	page, _, err := db.Files().List(t.Context(), "many", "", 1000, now.Add(file.DefaultLifetime))
	if err != nil || len(page) != 200 {
		t.Errorf("of the 2,000 newest files %d have not expired, %v", len(page), err)
	}
	jobs, next, err := db.Jobs().List(t.Context(), "account7", job.Filter{}, "", 2, now)
	if err != nil || len(jobs) != 2 || next == "" || jobs[0].Result == nil {
		t.Errorf("the jobs of an account are %+v, %v", jobs, err)
	}
}
