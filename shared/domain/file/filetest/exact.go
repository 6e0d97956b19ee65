package filetest

import (
	"fmt"
	"math/rand/v2"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/conformance"
)

// A store may split an account's stored bytes into several sums, but the limit must still be exact.
var exactTests = []test{
	{"concurrent uploads fill the storage to the last byte", func(s *suite) {
		files := make([]file.File, racers)
		for i := range files {
			files[i] = s.sized("acme", 2)
		}
		for _, err := range conformance.Race(racers, func(i int) error {
			return s.Store.Create(s.ctx, files[i], 2*racers)
		}) {
			conformance.OK(s, err)
		}
		s.stores("acme", 2*racers, 2*racers)
	}},
	{"storage that several files freed is enough for one large file", func(s *suite) {
		const count = 24
		var files []file.File
		for range count {
			f := s.sized("acme", 5)
			conformance.OK(s, s.Store.Create(s.ctx, f, 5*count))
			files = append(files, f)
		}
		s.stores("acme", 5*count, 5*count)
		for i, f := range files {
			if i%3 > 0 {
				_, err := s.Store.Delete(s.ctx, "acme", f.ID, s.now)
				conformance.OK(s, err)
			}
		}
		s.stores("acme", 5*count/3, 5*count)
	}},
	{"a file within the limit is created while others are created and deleted", func(s *suite) {
		const each, count = 10, 6
		for _, err := range conformance.Race(count, func(int) error {
			for range 8 {
				f := s.sized("acme", each)
				if err := s.Store.Create(s.ctx, f, each*count); err != nil {
					return err
				}
				if _, err := s.Store.Delete(s.ctx, "acme", f.ID, s.now); err != nil {
					return err
				}
				r, err := s.Store.Reserve(s.ctx, s.reservation("acme"), each, each, each*count, s.now)
				if err != nil {
					return err
				}
				if err := s.Store.Release(s.ctx, r); err != nil {
					return err
				}
			}
			return nil
		}) {
			conformance.OK(s, err)
		}
		s.stores("acme", 0, each*count)
	}},
	{"each upload has its own limit", func(s *suite) {
		for seed := range uint64(6) {
			newAccounts(s, seed).play(40)
		}
	}},
	{"concurrent pending files are created up to the limit", func(s *suite) {
		const most = 7
		files := make([]file.File, racers)
		for i := range files {
			files[i] = s.big("acme", 60, 0)
			files[i].Upload.Most = most
		}
		won := conformance.Winners(s, conformance.Race(racers,
			func(i int) error { return s.Store.Create(s.ctx, files[i], 0) }), fault.Limited)
		s.same("pending files", len(won), most)
		for _, i := range won {
			conformance.OK(s, s.Store.Abandon(s.ctx, files[i].ID))
		}
		s.stores("acme", 0, 100)
	}},
	{"repeated calls count once", func(s *suite) {
		f := s.sized("acme", 60)
		conformance.OK(s, s.Store.Create(s.ctx, f, 200))
		if s.Store.Create(s.ctx, f, 200) == nil {
			s.Error("the same file was created twice")
		}
		s.stores("acme", 60, 200)
		r := s.reservation("acme")
		for range 3 {
			// The first call's response was lost, so the client repeats it.
			s.reserve(r, 30, 200)
			s.stores("acme", 90, 200)
		}
		r = s.reserve(r, 40, 200)
		for range 3 {
			conformance.OK(s, s.Store.Release(s.ctx, r))
			s.stores("acme", 60, 200)
		}
		p := s.big("acme", 50, 200)
		conformance.OK(s, s.Store.Create(s.ctx, p, 200))
		for range 3 {
			s.finalize(p)
			s.stores("acme", 110, 200)
		}
		_, err := s.Store.Delete(s.ctx, "acme", p.ID, s.now)
		conformance.OK(s, err)
		_, err = s.Store.Delete(s.ctx, "acme", p.ID, s.now)
		conformance.Fails(s, err, fault.NotFound)
		s.stores("acme", 60, 200)
	}},
}

// accounts makes random changes under changing limits, and knows which changes must be rejected.
type accounts struct {
	*suite
	random   *rand.Rand
	name     string
	used     int64
	files    []file.File
	reserved []file.Reservation
	promised []file.File
}

func newAccounts(s *suite, seed uint64) *accounts {
	return &accounts{suite: s, random: rand.New(rand.NewPCG(seed, 5)), name: fmt.Sprint("account", seed)}
}

func (a *accounts) play(turns int) {
	a.Helper()
	limits := []int64{0, 60, 100, 100, 150}
	for range turns {
		limit := limits[a.random.IntN(len(limits))]
		switch size := 1 + a.random.Int64N(40); a.random.IntN(7) {
		case 0, 1:
			f := a.sized(a.name, size)
			if a.fits(a.Store.Create(a.ctx, f, limit), size, limit) {
				a.files = append(a.files, f)
			}
		case 2:
			r, err := a.Store.Reserve(a.ctx, a.reservation(a.name), size, size, limit, a.now)
			if a.fits(err, size, limit) {
				a.reserved = append(a.reserved, r)
			}
		case 3:
			f := a.big(a.name, 10+size, limit)
			if a.fits(a.Store.Create(a.ctx, f, limit), 10, limit) {
				a.promised = append(a.promised, f)
			}
		case 4:
			if len(a.promised) > 0 {
				f := a.promised[0]
				f.Pending = false
				if a.fits(a.Store.Finalize(a.ctx, f, a.now), f.Size-10, f.Upload.Limit) {
					a.files, a.promised = append(a.files, f), a.promised[1:]
				}
			}
		case 5:
			if len(a.reserved) > 0 {
				f := a.sized(a.name, size)
				f.Reserved = a.reserved[0]
				if size <= f.Reserved.Bytes {
					limit = 0 // if others exceeded the limit, a change that adds nothing may be accepted or rejected
				}
				if a.fits(a.Store.Create(a.ctx, f, limit), size-f.Reserved.Bytes, limit) {
					f.Reserved = file.Reservation{}
					a.files, a.reserved = append(a.files, f), a.reserved[1:]
				}
			}
		case 6:
			if len(a.files) > 0 {
				_, err := a.Store.Delete(a.ctx, a.name, a.files[0].ID, a.now)
				conformance.OK(a, err)
				a.used -= a.files[0].Size
				a.files = a.files[1:]
			}
		}
	}
	a.stores(a.name, a.used, a.used+10)
}

// fits checks that a change was rejected if and only if its bytes did not fit.
func (a *accounts) fits(err error, bytes, limit int64) bool {
	a.Helper()
	if bytes > 0 && limit > 0 && a.used+bytes > limit {
		conformance.Fails(a, err, fault.Limited)
		return false
	}
	conformance.OK(a, err)
	a.used += bytes
	return true
}
