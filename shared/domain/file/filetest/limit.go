package filetest

import (
	"math/rand/v2"
	"slices"
	"sync"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/conformance"
)

const racers = 50

func (s *suite) sized(account string, size int64) file.File {
	f := s.new(account)
	f.Size = size
	return f
}

// stores checks that new bytes fit up to the limit, and no more.
func (s *suite) stores(account string, used, limit int64) {
	s.Helper()
	over := s.sized(account, limit-used+1)
	conformance.Fails(s, s.Store.Create(s.ctx, over, limit), fault.Limited)
	s.unknown(over, s.now)
	if used == limit {
		return
	}
	fits := s.sized(account, limit-used)
	conformance.OK(s, s.Store.Create(s.ctx, fits, limit))
	_, err := s.Store.Delete(s.ctx, account, fits.ID, s.now)
	conformance.OK(s, err)
}

var limitTests = []test{
	{"a file that just fits is created, and one byte more is rejected", func(s *suite) {
		conformance.Fails(s, s.Store.Create(s.ctx, s.sized("acme", 101), 100), fault.Limited)
		conformance.OK(s, s.Store.Create(s.ctx, s.sized("acme", 60), 100))
		s.stores("acme", 60, 100)
		conformance.OK(s, s.Store.Create(s.ctx, s.sized("acme", 40), 100))
		s.stores("acme", 100, 100)
	}},
	{"a limit of 0 is unlimited, and its files count under other limits", func(s *suite) {
		s.keep(s.sized("acme", 5<<40))
		s.keep(s.sized("acme", 1))
		conformance.Fails(s, s.Store.Create(s.ctx, s.sized("acme", 1), 100), fault.Limited)
		s.stores("acme", 5<<40+1, 5<<40+2)
	}},
	{"each account has its own limit", func(s *suite) {
		conformance.OK(s, s.Store.Create(s.ctx, s.sized("acme", 100), 100))
		conformance.OK(s, s.Store.Create(s.ctx, s.sized("zoo", 100), 100))
	}},
	{"pending files count once, from their creation", func(s *suite) {
		f := s.newPending("acme")
		f.Size = 60
		conformance.OK(s, s.Store.Create(s.ctx, f, 100))
		s.stores("acme", 60, 100)
		f = s.finalize(f)
		conformance.OK(s, s.Store.Finalize(s.ctx, f, s.now))
		s.stores("acme", 60, 100)
	}},
	{"a pending file that does not fit is rejected", func(s *suite) {
		f := s.newPending("acme")
		f.Size = 101
		conformance.Fails(s, s.Store.Create(s.ctx, f, 100), fault.Limited)
		_, err := s.Store.PendingUpload(s.ctx, f.ID)
		conformance.Fails(s, err, fault.NotFound)
	}},
	{"a deleted file frees its storage once", func(s *suite) {
		f := s.sized("acme", 60)
		conformance.OK(s, s.Store.Create(s.ctx, f, 100))
		conformance.OK(s, s.Store.Create(s.ctx, s.sized("acme", 40), 100))
		_, err := s.Store.Delete(s.ctx, "acme", f.ID, s.now)
		conformance.OK(s, err)
		_, err = s.Store.Delete(s.ctx, "acme", f.ID, s.now)
		conformance.Fails(s, err, fault.NotFound)
		s.stores("acme", 40, 100)
	}},
	{"an expired file does not block uploads, even before a sweep", func(s *suite) {
		for range 10 {
			f := s.sized("acme", 10)
			f.ExpiresAt = s.at(10)
			conformance.OK(s, s.Store.Create(s.ctx, f, 100))
		}
		before, after := s.sized("acme", 100), s.sized("acme", 100)
		before.CreatedAt, after.CreatedAt = s.at(9), s.at(10)
		conformance.Fails(s, s.Store.Create(s.ctx, before, 100), fault.Limited)
		conformance.OK(s, s.Store.Create(s.ctx, after, 100))
		s.listed("acme", s.at(10), after)
		conformance.Fails(s, s.Store.Create(s.ctx, s.sized("acme", 1), 100), fault.Limited)
	}},
	{"an overdue pending file does not block uploads", func(s *suite) {
		f := s.newPending("acme")
		f.Size = 100
		conformance.OK(s, s.Store.Create(s.ctx, f, 100))
		late := s.sized("acme", 1)
		late.CreatedAt = f.UploadUntil
		conformance.OK(s, s.Store.Create(s.ctx, late, 100))
	}},
	{"concurrent uploads are created as long as they fit", func(s *suite) {
		files := make([]file.File, racers)
		for i := range files {
			files[i] = s.sized("acme", 10)
		}
		won := conformance.Winners(s, conformance.Race(racers,
			func(i int) error { return s.Store.Create(s.ctx, files[i], 75) }), fault.Limited)
		s.same("files created", len(won), 7)
		slices.Reverse(won)
		var want []file.File
		for _, i := range won {
			want = append(want, files[i])
		}
		s.listed("acme", s.now, want...)
		s.stores("acme", 70, 75)
	}},
	{"the count is exact after concurrent uploads and deletes", func(s *suite) {
		const limit = 200
		var (
			mu   sync.Mutex
			used int64
		)
		for _, err := range conformance.Race(10, func(racer int) error {
			random := rand.New(rand.NewPCG(1, uint64(racer)))
			var own []file.File
			for range 20 {
				if len(own) > 0 && random.IntN(3) == 0 {
					f := own[0]
					own = own[1:]
					if _, err := s.Store.Delete(s.ctx, "acme", f.ID, s.now); err != nil {
						return err
					}
					continue
				}
				f := s.sized("acme", random.Int64N(30))
				err := s.Store.Create(s.ctx, f, limit)
				if err == nil {
					own = append(own, f)
				} else if !fault.Is(err, fault.Limited) {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for _, f := range own {
				used += f.Size
			}
			return nil
		}) {
			conformance.OK(s, err)
		}
		if used > limit {
			s.Fatalf("%d bytes are stored, more than the limit %d", used, limit)
		}
		s.stores("acme", used, limit)
	}},
}
