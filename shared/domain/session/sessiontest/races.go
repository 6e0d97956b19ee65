package sessiontest

import (
	"fmt"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
	"cutroom/shared/testkit/conformance"
)

// highLimit is a limit that adapters may keep otherwise than a low one.
const highLimit = 260

// fill has clients of two instances take more slots at once than the high limit allows, and
// returns those that were taken.
func (s *suite) fill() (taken []session.Slot) {
	s.Helper()
	s.begin(one, two)
	slots := make([]session.Slot, highLimit+racers)
	for i := range slots {
		slots[i] = slot(i, []string{one, two}[i%2])
	}
	errs := conformance.Race(len(slots), func(i int) error { return s.Store.Take(s.ctx, slots[i], highLimit) })
	for _, i := range conformance.Winners(s, errs, fault.Limited) {
		taken = append(taken, slots[i])
	}
	if len(taken) != highLimit {
		s.Fatalf("%d slots were taken, want %d", len(taken), highLimit)
	}
	s.active(account, highLimit)
	return taken
}

// racers is how many goroutines try the same thing at once.
const racers = 40

// of counts the slots of an epoch.
func (s *suite) of(epoch string, slots []session.Slot) (count int) {
	for _, slot := range slots {
		if slot.Epoch == epoch {
			count++
		}
	}
	return count
}

var raceTests = []test{
	{"take exactly as many slots as the limit says, for several instances", func(s *suite) {
		const limit = 7
		s.begin(one, two)
		epoch := func(i int) string { return []string{one, two}[i%2] }
		won := conformance.Winners(s, conformance.Race(racers, func(i int) error {
			return s.Store.Take(s.ctx, slot(i, epoch(i)), limit)
		}), fault.Limited)
		if len(won) != limit {
			s.Errorf("%d slots were taken, want %d", len(won), limit)
		}
		s.active(account, limit)
		for _, i := range won {
			conformance.OK(s, s.Store.Free(s.ctx, slot(i, epoch(i))))
		}
		s.active(account, 0)
	}},
	{"take exactly as many slots as a high limit says, also after it has changed", func(s *suite) {
		taken := s.fill()
		extra := func(n int) session.Slot { return slot(900+n, one) }
		conformance.Fails(s, s.Store.Take(s.ctx, extra(0), highLimit-5), fault.Limited)
		for _, freed := range taken[:6] {
			conformance.OK(s, s.Store.Free(s.ctx, freed))
		}
		conformance.OK(s, s.Store.Take(s.ctx, extra(1), highLimit-5))
		conformance.Fails(s, s.Store.Take(s.ctx, extra(2), highLimit-5), fault.Limited)
		conformance.Fails(s, s.Store.Take(s.ctx, extra(3), 3), fault.Limited)
		for n := 4; n < 9; n++ {
			conformance.OK(s, s.Store.Take(s.ctx, extra(n), highLimit))
		}
		conformance.Fails(s, s.Store.Take(s.ctx, extra(9), highLimit), fault.Limited)
		conformance.OK(s, s.Store.Take(s.ctx, extra(10), highLimit+1))
		conformance.OK(s, s.Store.Take(s.ctx, extra(11), 0))
		s.active(account, highLimit+2)
		conformance.OK(s, s.Store.End(s.ctx, one))
		s.begin("epoch-three")
		third := func(n int) session.Slot { return slot(950+n, "epoch-three") }
		conformance.OK(s, s.Store.Take(s.ctx, third(0), highLimit))
		s.active(account, s.of(two, taken[6:])+1)
		for _, left := range taken {
			conformance.OK(s, s.Store.Free(s.ctx, left))
		}
		s.active(account, 1)
		conformance.OK(s, s.Store.Take(s.ctx, third(1), 2))
		conformance.Fails(s, s.Store.Take(s.ctx, third(2), 2), fault.Limited)
	}},
	{"serve a line in order where the limit is high", func(s *suite) {
		taken := s.fill()
		s.join(slot(901, two), slot(902, one))
		conformance.Fails(s, s.Store.Redeem(s.ctx, slot(901, two), highLimit), fault.Limited)
		for _, freed := range taken[:1] {
			conformance.OK(s, s.Store.Free(s.ctx, freed))
		}
		for n := range 5 {
			conformance.Fails(s, s.Store.Take(s.ctx, slot(910+n, one), highLimit), fault.Limited)
		}
		conformance.Fails(s, s.Store.Redeem(s.ctx, slot(902, one), highLimit), fault.Limited)
		conformance.OK(s, s.Store.Redeem(s.ctx, slot(901, two), highLimit))
		s.line(one, slot(902, one))
		s.active(account, highLimit)
		conformance.OK(s, s.Store.Free(s.ctx, slot(901, two)))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(911, one), highLimit), fault.Limited)
		conformance.OK(s, s.Store.Leave(s.ctx, slot(902, one)))
		conformance.OK(s, s.Store.Take(s.ctx, slot(911, one), highLimit))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(912, one), highLimit), fault.Limited)
		s.active(account, highLimit)
	}},
	{"take and free at once without losing count", func(s *suite) {
		const limit = 3
		s.begin(one)
		held := make(chan struct{}, limit) // never more than its capacity are taken at once
		for _, err := range conformance.Race(8, func(racer int) error {
			for turn := range 12 {
				slot := slot(100*racer+turn, one)
				switch err := s.Store.Take(s.ctx, slot, limit); {
				case fault.Is(err, fault.Limited):
					continue
				case err != nil:
					return err
				}
				select {
				case held <- struct{}{}:
				default:
					return fmt.Errorf("more than %d slots were taken at once", limit)
				}
				<-held
				if err := s.Store.Free(s.ctx, slot); err != nil {
					return err
				}
			}
			return nil
		}) {
			conformance.OK(s, err)
		}
		s.active(account, 0)
	}},
	{"let either a renewal or a taker of the slots win, never both", func(s *suite) {
		s.begin(one)
		s.take(slot(1, one))
		s.Pass(session.TakeAfter)
		s.begin(two)
		errs := conformance.Race(racers, func(i int) error {
			if i%2 == 0 {
				return s.Store.Renew(s.ctx, one)
			}
			return s.Store.Take(s.ctx, slot(2, two), 1)
		})
		renewed := false
		for i := 0; i < racers; i += 2 {
			renewed = renewed || errs[i] == nil
			if errs[i] != nil {
				conformance.Fails(s, errs[i], fault.Conflict)
			}
		}
		taken := errs[1] == nil
		for i := 1; i < racers; i += 2 {
			taken = taken || errs[i] == nil
			if errs[i] != nil {
				conformance.Fails(s, errs[i], fault.Limited)
			}
		}
		alive := s.Store.Renew(s.ctx, one) == nil
		if alive == taken {
			s.Errorf("the lease is alive: %t, and its slot was taken: %t", alive, taken)
		}
		if alive && !renewed {
			s.Error("the lease is alive, but nobody renewed it")
		}
		s.active(account, 1)
	}},
}
