package filetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/conformance"
)

// A list is read page by page while files are created and deleted. It must contain every file that exists during the
// entire read, and must contain no file twice. It must not contain a file that was deleted before the first page was
// read (docs/contract/media.md#pages).
var pageTests = []test{
	{"lists are complete while files change between pages", func(s *suite) {
		for seed := range uint64(12) {
			account := fmt.Sprint("account", seed)
			w := &world{suite: s, account: account, random: rand.New(rand.NewPCG(seed, 1)), now: s.now,
				files: map[string]file.File{}}
			for range 25 {
				w.change()
			}
			w.walk(fmt.Sprintf("seed %d", seed), w.change)
		}
	}},
	{"lists are complete while files change concurrently", func(s *suite) {
		stays := map[string]bool{}
		for i := range 60 {
			if i%3 == 0 {
				stays[s.create("acme").ID] = true
			} else {
				s.createUntil("acme", 1)
			}
		}
		stop := make(chan struct{})
		var writers sync.WaitGroup
		for writer := range 4 {
			writers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(writer), 2))
				var own []string
				for {
					select {
					case <-stop:
						return
					default:
					}
					if len(own) > 5 {
						i := random.IntN(len(own))
						if _, err := s.Store.Delete(s.ctx, "acme", own[i], s.now); err != nil {
							s.Errorf("delete: %v", err)
							return
						}
						own = slices.Delete(own, i, i+1)
						continue
					}
					f := s.new("acme")
					if err := s.Store.Create(s.ctx, f, 0); err != nil {
						s.Errorf("create: %v", err)
						return
					}
					own = append(own, f.ID)
				}
			})
		}
		defer writers.Wait()
		defer close(stop)
		for limit := 1; limit < 8; limit++ {
			seen := map[string]bool{}
			for _, f := range s.list("acme", limit, s.at(1)) {
				if seen[f.ID] {
					s.Fatalf("%[2]s is listed twice with pages of %[1]d", limit, f.ID)
				}
				seen[f.ID] = true
			}
			for id := range stays {
				if !seen[id] {
					s.Fatalf("%[2]s is skipped with pages of %[1]d", limit, id)
				}
			}
		}
	}},
}

type world struct {
	*suite
	account string
	random  *rand.Rand
	now     time.Time
	// files maps ids to the files that a complete list contains.
	files map[string]file.File
}

// change creates, deletes, announces or finalizes a file, or advances the time.
func (w *world) change() {
	w.Helper()
	switch w.random.IntN(6) {
	case 0, 1:
		f := w.new(w.account)
		f.CreatedAt, f.ExpiresAt = w.now, w.now.Add(time.Duration(1+w.random.IntN(60))*time.Second)
		w.files[f.ID] = w.keep(f)
	case 2:
		f := w.new(w.account)
		f.ExpiresAt, f.Lifetime = time.Time{}, 0
		w.files[f.ID] = w.keep(f)
	case 3:
		f := w.newPending(w.account)
		w.keep(f)
		if w.random.IntN(2) == 0 {
			w.files[f.ID] = w.finalize(f)
		}
	case 4:
		ids := slices.Sorted(maps.Keys(w.files))
		if len(ids) == 0 {
			return
		}
		id := ids[w.random.IntN(len(ids))]
		_, err := w.Store.Delete(w.ctx, w.account, id, w.now)
		conformance.OK(w, err)
		delete(w.files, id)
	case 5:
		w.now = w.now.Add(time.Duration(w.random.IntN(5)) * time.Second)
		for id, f := range w.files {
			if f.Expired(w.now) {
				delete(w.files, id)
			}
		}
	}
}

func (w *world) walk(name string, change func()) {
	w.Helper()
	atStart := maps.Clone(w.files)
	newest := w.ids.Load()
	times := map[string]int{}
	after := ""
	for turn := 0; ; turn++ {
		page, next := w.page(w.account, after, 1+w.random.IntN(4), w.now)
		for _, f := range page {
			times[f.ID]++
			if f.Blob != "files/"+f.ID {
				w.Fatalf("%s: %s has the blob %s", name, f.ID, f.Blob)
			}
		}
		if next == "" {
			break
		}
		after = next
		if turn == maxPages {
			w.Fatalf("%s: the list has not ended after %d pages", name, turn)
		}
		change()
	}
	for id, n := range times {
		if n != 1 {
			w.Errorf("%s: %s is listed %d times", name, id, n)
		}
		if _, there := atStart[id]; !there && id <= fmt.Sprintf("file_%027d", newest) {
			w.Errorf("%s: %s is listed but was deleted before", name, id)
		}
	}
	for id := range atStart {
		if _, still := w.files[id]; still && times[id] != 1 {
			w.Errorf("%s: %s existed throughout and is listed %d times", name, id, times[id])
		}
	}
}

var raceTests = []test{
	{"an upload is found by its MD5 as soon as it was created", func(s *suite) {
		for _, err := range conformance.Race(racers, func(int) error {
			f := s.new("acme")
			if err := s.Store.Create(s.ctx, f, 0); err != nil {
				return err
			}
			found, err := s.Store.FindMD5(s.ctx, "acme", f.MD5, s.now)
			if err == nil && found.ID != f.ID {
				err = fmt.Errorf("found %s for %s", found.ID, f.ID)
			}
			return err
		}) {
			conformance.OK(s, err)
		}
	}},
	{"one of many concurrent deletes of a file succeeds", func(s *suite) {
		f := s.create("acme")
		won := conformance.Winners(s, conformance.Race(racers, func(int) error {
			_, err := s.Store.Delete(s.ctx, "acme", f.ID, s.now)
			return err
		}), fault.NotFound)
		s.same("deletes that succeeded", len(won), 1)
	}},
	{"concurrent calls that finalize a file succeed and count once", func(s *suite) {
		f := s.createPending("acme")
		for _, err := range conformance.Race(racers, func(racer int) error {
			finalized := f
			finalized.Pending, finalized.ExpiresAt = false, s.at(float64(100+racer))
			return s.Store.Finalize(s.ctx, finalized, s.now)
		}) {
			conformance.OK(s, err)
		}
		first, err := s.Store.Get(s.ctx, "acme", f.ID, s.now)
		conformance.OK(s, err)
		f.Pending, f.ExpiresAt = false, s.at(1)
		conformance.OK(s, s.Store.Finalize(s.ctx, f, s.now))
		s.known(first, s.now)
	}},
}
