package api_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// Rule 2: a page continues after the last file returned, so that uploads and
// deletions between pages neither repeat nor skip a file. Each walk through an
// account's files is disturbed at random, and then checked against what a client
// may rely on.
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
					// This may delete the very file that the cursor points to.
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
		// The pages are newest first, without repetition, and hold only files that
		// existed at the start: later ones are newer than the first page.
		inOrder := slices.DeleteFunc(slices.Clone(atStart), func(id string) bool { return !slices.Contains(seen, id) })
		if !slices.Equal(seen, inOrder) {
			t.Errorf("walk %d: listed\n%v\nof\n%v", walk, seen, atStart)
		}
		if t.Failed() {
			t.Fatalf("between the pages: %v", history)
		}
	}
}

// With concurrent uploads, deletions and lists, every list is ordered and without
// repetition, and at the end it holds what was uploaded and not deleted.
func TestFilesInParallel(t *testing.T) {
	w := newWorld(t, setup{})
	const writers, each = 4, 12
	var running, listing sync.WaitGroup
	stop := make(chan struct{})
	kept := make([][]string, writers)
	for writer := range writers {
		running.Go(func() {
			for i := range each {
				r := w.keep(studio, fmt.Sprintf("%d of %d", i, writer))
				if got := w.stored(w.get("/v1/files/by-md5/"+r.MD5, studio)); got.ID != r.ID {
					t.Errorf("by-md5 does not find what was uploaded")
				}
				if i%3 != 0 {
					kept[writer] = append(kept[writer], r.ID)
				} else if a := w.request("DELETE", "/v1/files/"+r.ID, studio, nil); a.status != 204 {
					t.Errorf("delete: %d %s", a.status, a.body)
				}
			}
		})
	}
	for reader := range 2 {
		listing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var ids []string
				for cursor := ""; ; {
					p := w.list(studio, fmt.Sprintf("limit=%d%s", 3+reader, cursor))
					ids = append(ids, p.ids()...)
					if p.NextCursor == nil {
						break
					}
					cursor = "&cursor=" + *p.NextCursor
				}
				for i := 1; i < len(ids); i++ {
					if ids[i] >= ids[i-1] {
						t.Errorf("%s is listed after %s", ids[i], ids[i-1])
						return
					}
				}
			}
		})
	}
	running.Wait()
	close(stop)
	listing.Wait()
	want := slices.Concat(kept...)
	slices.Sort(want)
	slices.Reverse(want)
	if got := w.list(studio, "limit=1000").ids(); !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
	if blobs := w.files(); len(blobs) != len(want) {
		t.Errorf("%d files have %d blobs", len(want), len(blobs))
	}
}
