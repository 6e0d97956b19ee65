package sqlite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

// The next pages contain the other jobs, each job once.
func TestPagesOfLongPromptsAreShort(t *testing.T) {
	const count, prompt = 400, 16_000
	db := open(t)
	for i := range count {
		j := newJob(fmt.Sprintf("job_%04d", i), "acme")
		j.Request.Prompt = strings.Repeat("x", prompt)
		if err := db.Jobs().Accept(t.Context(), j, 0); err != nil {
			t.Fatal(err)
		}
	}
	for search, most := range map[string]int{"": 1<<20/prompt + 1, "none": 0, "x": 4<<20/prompt + 1} {
		found, pages, after := 0, 0, ""
		for last := "job_~"; ; pages++ {
			jobs, next, err := db.Jobs().List(t.Context(), "acme", job.Filter{Search: search}, after, 1000, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if len(jobs) > most {
				t.Errorf("search %q: a page has %d jobs, more than %d", search, len(jobs), most)
			}
			for _, j := range jobs {
				if j.ID >= last {
					t.Fatalf("search %q: %s follows %s", search, j.ID, last)
				}
				last = j.ID
			}
			if found, after = found+len(jobs), next; next == "" {
				break
			}
		}
		want := count
		if search == "none" {
			want = 0
		}
		if found != want || pages == 0 {
			t.Errorf("search %q: %d jobs in %d pages, want %d in several", search, found, pages+1, want)
		}
	}
}
