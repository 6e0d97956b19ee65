package filetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/conformance"
)

func (s *suite) reservation(account string) file.Reservation {
	return file.Reservation{Account: account, ID: fmt.Sprint("reservation", s.ids.Add(1)), Until: s.at(600)}
}

func (s *suite) reserve(r file.Reservation, bytes, limit int64) file.Reservation {
	s.Helper()
	got, err := s.Store.Reserve(s.ctx, r, bytes, bytes, limit, s.now)
	conformance.OK(s, err)
	want := r
	want.Bytes = bytes
	s.same("reservation", got, want)
	return got
}

// big returns a pending file that has the given size but counts as 10 bytes.
func (s *suite) big(account string, size, limit int64) file.File {
	f := s.newPending(account)
	f.Size, f.Upload = size, file.PendingUpload{Bytes: 10, Limit: limit}
	return f
}

var reserveTests = []test{
	{"a reservation counts until it is released", func(s *suite) {
		r := s.reserve(s.reservation("acme"), 60, 100)
		s.stores("acme", 60, 100)
		s.stores("zoo", 0, 100)
		conformance.OK(s, s.Store.Release(s.ctx, r))
		conformance.OK(s, s.Store.Release(s.ctx, r))
		s.stores("acme", 0, 100)
	}},
	{"a reservation grows", func(s *suite) {
		r := s.reserve(s.reservation("acme"), 60, 100)
		r = s.reserve(r, 100, 100)
		s.stores("acme", 100, 100)
		conformance.OK(s, s.Store.Release(s.ctx, r))
		s.stores("acme", 0, 100)
	}},
	{"a reservation gets the most if storage is ample, and otherwise the least", func(s *suite) {
		const ahead = 10
		limit := int64(60 + file.Ample*ahead)
		r, err := s.Store.Reserve(s.ctx, s.reservation("acme"), 50, 50+ahead, limit, s.now)
		conformance.OK(s, err)
		s.same("bytes", r.Bytes, int64(60))
		other, err := s.Store.Reserve(s.ctx, s.reservation("acme"), 50, 50+ahead, limit, s.now)
		conformance.OK(s, err)
		s.same("bytes of another reservation", other.Bytes, int64(50))
		_, err = s.Store.Reserve(s.ctx, s.reservation("acme"), limit-109, limit, limit, s.now)
		conformance.Fails(s, err, fault.Limited)
		conformance.OK(s, s.Store.Release(s.ctx, r))
		other, err = s.Store.Reserve(s.ctx, other, 51, 60, limit, s.now)
		conformance.OK(s, err)
		s.same("bytes of another reservation", other.Bytes, int64(60))
		s.stores("acme", 60, limit)
	}},
	{"a renewal does not shrink the reservation", func(s *suite) {
		r := s.reserve(s.reservation("acme"), 60, 100)
		r.Until = s.at(1000)
		r, err := s.Store.Reserve(s.ctx, r, 10, 10, 100, s.now)
		conformance.OK(s, err)
		s.same("bytes", r.Bytes, int64(60))
	}},
	{"a reservation that does not fit stays unchanged", func(s *suite) {
		r := s.reserve(s.reservation("acme"), 60, 100)
		_, err := s.Store.Reserve(s.ctx, r, 101, 200, 100, s.now)
		conformance.Fails(s, err, fault.Limited)
		s.stores("acme", 60, 100)
	}},
	{"a renewal returns the size to a caller that does not know it", func(s *suite) {
		r := s.reservation("acme")
		s.reserve(r, 60, 100)
		got, err := s.Store.Reserve(s.ctx, r, 1, 1, 0, s.now)
		conformance.OK(s, err)
		s.same("bytes", got.Bytes, int64(60))
		s.stores("acme", 60, 100)
		conformance.OK(s, s.Store.Release(s.ctx, r))
		s.stores("acme", 0, 100)
	}},
	{"a reservation can be renewed in an account over its limit", func(s *suite) {
		r := s.reserve(s.reservation("acme"), 60, 100)
		r.Until = s.at(1000)
		r, err := s.Store.Reserve(s.ctx, r, 60, 90, 50, s.now)
		conformance.OK(s, err)
		s.same("bytes", r.Bytes, int64(60))
	}},
	{"a limit of 0 is unlimited, and its reservations count under other limits", func(s *suite) {
		r, err := s.Store.Reserve(s.ctx, s.reservation("acme"), 60, 70, 0, s.now)
		conformance.OK(s, err)
		s.same("bytes", r.Bytes, int64(70))
		s.stores("acme", 70, 100)
	}},
	{"a file replaces its reservation", func(s *suite) {
		for _, size := range []int64{60, 50, 100} {
			f := s.sized("acme", size)
			f.Reserved = s.reserve(s.reservation("acme"), 60, 100)
			conformance.OK(s, s.Store.Create(s.ctx, f, 100))
			conformance.OK(s, s.Store.Release(s.ctx, f.Reserved))
			s.stores("acme", size, 100)
			kept := f
			kept.Reserved = file.Reservation{}
			s.known(kept, s.now)
			_, err := s.Store.Delete(s.ctx, "acme", f.ID, s.now)
			conformance.OK(s, err)
			s.stores("acme", 0, 100)
		}
	}},
	{"a file that does not fit does not change its reservation", func(s *suite) {
		f := s.sized("acme", 101)
		f.Reserved = s.reserve(s.reservation("acme"), 60, 100)
		conformance.Fails(s, s.Store.Create(s.ctx, f, 100), fault.Limited)
		s.stores("acme", 60, 100)
	}},
	{"a file without its former reservation is created if it fits", func(s *suite) {
		f := s.sized("acme", 60)
		f.Reserved = s.reserve(s.reservation("acme"), 60, 100)
		conformance.OK(s, s.Store.Release(s.ctx, f.Reserved))
		conformance.OK(s, s.Store.Create(s.ctx, f, 100))
		s.stores("acme", 60, 100)
	}},
	{"an expired reservation does not count, and a renewed one does", func(s *suite) {
		lost := s.reserve(s.reservation("acme"), 60, 100)
		s.reserve(s.reservation("acme"), 40, 100)
		kept := s.reservation("acme")
		_, err := s.Store.Reserve(s.ctx, kept, 60, 60, 100, s.at(599))
		conformance.Fails(s, err, fault.Limited)
		lost.Until = s.at(700)
		lost = s.reserve(lost, 60, 100)
		kept.Until = s.at(1000)
		_, err = s.Store.Reserve(s.ctx, kept, 60, 60, 100, s.at(600))
		conformance.Fails(s, err, fault.Limited)
		kept, err = s.Store.Reserve(s.ctx, kept, 60, 60, 100, s.at(700))
		conformance.OK(s, err)
		conformance.OK(s, s.Store.Release(s.ctx, lost))
		s.stores("acme", 60, 100)
		lost.Until = s.at(1000)
		_, err = s.Store.Reserve(s.ctx, lost, 60, 60, 100, s.at(700))
		conformance.Fails(s, err, fault.Limited)
		conformance.OK(s, s.Store.Release(s.ctx, kept))
		s.stores("acme", 0, 100)
	}},
	{"a reservation that has ended does not block a file", func(s *suite) {
		s.reserve(s.reservation("acme"), 100, 100)
		f := s.sized("acme", 100)
		conformance.Fails(s, s.Store.Create(s.ctx, f, 100), fault.Limited)
		f.CreatedAt = s.at(600)
		conformance.OK(s, s.Store.Create(s.ctx, f, 100))
	}},
	{"expired files do not block a reservation", func(s *suite) {
		f := s.sized("acme", 100)
		f.ExpiresAt = s.at(10)
		conformance.OK(s, s.Store.Create(s.ctx, f, 100))
		_, err := s.Store.Reserve(s.ctx, s.reservation("acme"), 1, 1, 100, s.at(9))
		conformance.Fails(s, err, fault.Limited)
		_, err = s.Store.Reserve(s.ctx, s.reservation("acme"), 100, 100, 100, s.at(10))
		conformance.OK(s, err)
	}},
	{"a pending file counts its Upload.Bytes, and its size after it is finalized", func(s *suite) {
		f := s.big("acme", 60, 100)
		conformance.OK(s, s.Store.Create(s.ctx, f, 100))
		s.stores("acme", 10, 100)
		s.pending(f)
		f = s.finalize(f)
		s.known(f, s.now)
		s.stores("acme", 60, 100)
		_, err := s.Store.Delete(s.ctx, "acme", f.ID, s.now)
		conformance.OK(s, err)
		s.stores("acme", 0, 100)
	}},
	{"a finalized file replaces its reservation and its pending count", func(s *suite) {
		f := s.big("acme", 100, 100)
		conformance.OK(s, s.Store.Create(s.ctx, f, 100))
		f.Reserved = s.reserve(s.reservation("acme"), 90, 100)
		s.stores("acme", 100, 100)
		f.Pending = false
		conformance.OK(s, s.Store.Finalize(s.ctx, f, s.now))
		s.stores("acme", 100, 100)
	}},
	{"a pending file that no longer fits is not finalized, and can be finalized later", func(s *suite) {
		f := s.big("acme", 60, 100)
		conformance.OK(s, s.Store.Create(s.ctx, f, 100))
		other := s.sized("acme", 50)
		other.ExpiresAt = s.at(10)
		conformance.OK(s, s.Store.Create(s.ctx, other, 100))
		finalized := f
		finalized.Pending = false
		conformance.Fails(s, s.Store.Finalize(s.ctx, finalized, s.now), fault.Limited)
		s.unknown(f, s.now)
		s.stores("acme", 60, 100)
		conformance.OK(s, s.Store.Finalize(s.ctx, finalized, s.at(10)))
		s.known(finalized, s.at(10))
	}},
	{"an abandoned file counts nothing and cannot be finalized", func(s *suite) {
		f := s.big("acme", 60, 100)
		conformance.OK(s, s.Store.Create(s.ctx, f, 100))
		conformance.OK(s, s.Store.Abandon(s.ctx, f.ID))
		s.stores("acme", 0, 100)
		conformance.Fails(s, s.Store.Abandon(s.ctx, f.ID), fault.NotFound)
		conformance.Fails(s, s.Store.Finalize(s.ctx, f, s.now), fault.NotFound)
		kept := s.finalize(s.createPending("acme"))
		conformance.Fails(s, s.Store.Abandon(s.ctx, kept.ID), fault.NotFound)
		s.known(kept, s.now)
	}},
	{"the pending files of an account are limited independently of other accounts", func(s *suite) {
		createPending := func(account string) (file.File, error) {
			f := s.big(account, 60, 0)
			f.Upload.Most = 2
			err := s.Store.Create(s.ctx, f, 0)
			f.Upload.Most = 0
			return f, err
		}
		many := func(account string) {
			s.Helper()
			if _, err := createPending(account); !fault.Is(err, fault.Limited) || !errors.Is(err, file.ErrTooManyPending) {
				s.Fatalf("got %v, want ErrTooManyPending", err)
			}
		}
		var pending []file.File
		for range 2 {
			f, err := createPending("acme")
			conformance.OK(s, err)
			pending = append(pending, f)
		}
		many("acme")
		_, err := createPending("zoo")
		conformance.OK(s, err)
		s.finalize(pending[0])
		_, err = createPending("acme")
		conformance.OK(s, err)
		many("acme")
		conformance.OK(s, s.Store.Abandon(s.ctx, pending[1].ID))
		_, err = createPending("acme")
		conformance.OK(s, err)
		many("acme")
		late := s.big("acme", 60, 0)
		late.Upload.Most, late.CreatedAt, late.UploadUntil = 2, s.at(600), s.at(1200)
		conformance.OK(s, s.Store.Create(s.ctx, late, 0))
	}},
	{"concurrent uploads reserve no more than fits", func(s *suite) {
		const limit = 1000
		held := make([]file.Reservation, racers)
		for i, err := range conformance.Race(racers, func(i int) (err error) {
			held[i] = s.reservation("acme")
			for range 5 {
				if held[i], err = s.Store.Reserve(s.ctx, held[i], held[i].Bytes+7, held[i].Bytes+8, limit, s.now); err != nil {
					return err
				}
			}
			return nil
		}) {
			if err != nil && !fault.Is(err, fault.Limited) {
				s.Fatalf("racer %d: %v", i, err)
			}
		}
		used := int64(0)
		for _, r := range held {
			used += r.Bytes
		}
		if used > limit || used <= limit-7 {
			s.Fatalf("%d bytes are reserved, more than the limit %d", used, limit)
		}
		s.stores("acme", used, limit)
	}},
	{"the count is exact after concurrent reservations, files and releases", func(s *suite) {
		const limit = 500
		var (
			mu   sync.Mutex
			used int64
		)
		for _, err := range conformance.Race(10, func(racer int) error {
			random := rand.New(rand.NewPCG(3, uint64(racer)))
			for range 15 {
				r, err := s.Store.Reserve(s.ctx, s.reservation("acme"), 1, 1+random.Int64N(30), limit, s.now)
				if err == nil && random.IntN(2) == 0 {
					r, err = s.Store.Reserve(s.ctx, r, r.Bytes+1, r.Bytes+20, limit, s.now)
				}
				if fault.Is(err, fault.Limited) {
					err = nil
				}
				if err != nil {
					return err
				}
				if random.IntN(3) == 0 || r.Bytes == 0 {
					if err := s.Store.Release(s.ctx, r); err != nil {
						return err
					}
					continue
				}
				f := s.sized("acme", 1+random.Int64N(r.Bytes))
				f.Reserved = r
				if err := s.Store.Create(s.ctx, f, limit); err != nil {
					return err
				}
				mu.Lock()
				used += f.Size
				mu.Unlock()
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
