package sessiontest

import (
	"fmt"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
	"cutroom/shared/testkit/conformance"
)

const racers = 40

var raceTests = []test{
	{"take exactly as many slots as the limit allows, for several instances", func(s *suite) {
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
	{"take and free concurrently without miscounting", func(s *suite) {
		const limit = 3
		s.begin(one)
		held := make(chan struct{}, limit) // the channel's capacity limits the number of taken slots
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
					return fmt.Errorf("more than %d slots were taken", limit)
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
	{"let either a renewal or a taker of the slots win, but not both", func(s *suite) {
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
			s.Error("the lease is alive, but was not renewed")
		}
		s.active(account, 1)
	}},
}
