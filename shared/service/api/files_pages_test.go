package api_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Rule 2: uploads and deletions between pages neither repeat nor skip a file. Each walk through an account's
// files is disturbed at random, and then checked.
func TestPagesNeitherRepeatNorSkip(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, setup{})
	var present []string // oldest first
	var deleted []string
	add := func() {
		lifetime := []string{"persistent", "86400", "60"}[random.IntN(3)]
		id := w.keep(studio, "x", text("ttl_seconds", lifetime)).ID
		if lifetime != "60" {
			present = append(present, id)
		}
	}
	remove := func(i int) {
		if a := w.request("DELETE", "/v1/files/"+present[i], studio, nil); a.status != 204 {
			t.Fatalf("delete: %d %s", a.status, a.body)
		}
		deleted = append(deleted, present[i])
		present = slices.Delete(present, i, i+1)
	}
	for walk := range 15 {
		for range random.IntN(12) {
			add()
		}
		w.pass(time.Minute) // the shortest-lived files have expired
		throughout := slices.Clone(present)
		atStart := slices.Clone(present)
		slices.Reverse(atStart)
		var seen, history []string
		for cursor := ""; ; {
			limit := 1 + random.IntN(5)
			p := w.list(studio, fmt.Sprintf("limit=%d%s", limit, cursor))
			for _, id := range p.ids() {
				if slices.Contains(deleted, id) {
					t.Errorf("walk %d: a deleted file is listed", walk)
				}
			}
			seen = append(seen, p.ids()...)
			if len(p.Files) > limit || p.NextCursor != nil && len(p.Files) != limit {
				t.Errorf("walk %d: a page of %d has %d files", walk, limit, len(p.Files))
			}
			if p.NextCursor == nil {
				break
			}
			cursor = "&cursor=" + *p.NextCursor
			for range random.IntN(4) {
				if len(present) == 0 || random.IntN(2) == 0 {
					add()
					history = append(history, "upload")
				} else {
					// This may delete the file that the cursor points to.
					i := random.IntN(len(present))
					if last := slices.Index(present, seen[len(seen)-1]); last >= 0 && random.IntN(3) == 0 {
						i = last
					}
					history = append(history, "delete "+present[i])
					remove(i)
				}
			}
		}
		throughout = slices.DeleteFunc(throughout, func(id string) bool { return !slices.Contains(present, id) })
		for _, id := range throughout {
			if count := len(seen) - len(slices.DeleteFunc(slices.Clone(seen),
				func(other string) bool { return other == id })); count != 1 {
				t.Errorf("walk %d: a file that was there throughout was listed %d times", walk, count)
			}
		}
		// The pages are newest first, without duplicates. They contain only files that existed at
		// the start, because later files are newer than the first page.
		inOrder := slices.DeleteFunc(slices.Clone(atStart), func(id string) bool { return !slices.Contains(seen, id) })
		if !slices.Equal(seen, inOrder) {
			t.Errorf("walk %d: listed\n%v\nof\n%v", walk, seen, atStart)
		}
		if t.Failed() {
			t.Fatalf("between the pages: %v", history)
		}
	}
}
