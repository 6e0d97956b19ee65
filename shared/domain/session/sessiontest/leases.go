package sessiontest

import (
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
	"cutroom/shared/testkit/conformance"
)

var leaseTests = []test{
	{"keep a lease that is renewed", func(s *suite) {
		s.begin(one)
		s.take(slot(1, one))
		for range 10 {
			s.Pass(session.RenewEvery)
			conformance.OK(s, s.Store.Renew(s.ctx, one))
			s.active(account, 1)
		}
		conformance.Fails(s, s.Store.Take(s.ctx, slot(2, one), 1), fault.Limited)
	}},
	{"do not count slots of a lease that is not renewed, from TakeAfter on", func(s *suite) {
		s.begin(one, two)
		s.take(slot(1, one), slot(2, two))
		s.Pass(session.TakeAfter - moment)
		s.active(account, 2)
		conformance.OK(s, s.Store.Renew(s.ctx, two))
		s.Pass(moment)
		s.active(account, 1)
	}},
	{"take slots of a lease only from TakeAfter on", func(s *suite) {
		s.begin(one, two)
		s.take(slot(1, one), slot(2, one))
		s.Pass(session.TakeAfter - moment)
		conformance.OK(s, s.Store.Renew(s.ctx, two))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(3, two), 2), fault.Limited)
		s.Pass(moment)
		conformance.OK(s, s.Store.Take(s.ctx, slot(3, two), 2))
		conformance.OK(s, s.Store.Take(s.ctx, slot(4, two), 2))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(5, two), 2), fault.Limited)
		s.active(account, 2)
	}},
	{"never revive a dead epoch", func(s *suite) {
		s.begin(one, two)
		s.take(slot(1, one))
		s.Pass(session.TakeAfter - moment)
		conformance.OK(s, s.Store.Renew(s.ctx, two))
		s.Pass(moment)
		conformance.OK(s, s.Store.Take(s.ctx, slot(2, two), 1))
		for range 2 {
			conformance.Fails(s, s.Store.Renew(s.ctx, one), fault.Conflict)
			conformance.Fails(s, s.Store.Begin(s.ctx, one, ""), fault.Conflict)
			conformance.Fails(s, s.Store.Take(s.ctx, slot(3, one), 0), fault.Conflict)
			conformance.Fails(s, s.Store.Take(s.ctx, slot(1, one), 0), fault.Conflict)
		}
		s.active(account, 1)
	}},
	{"take a slot under a new lease while another is dead", func(s *suite) {
		s.begin(one)
		s.take(slot(1, one))
		s.Pass(10 * session.TakeAfter)
		s.begin(two)
		conformance.OK(s, s.Store.Take(s.ctx, slot(2, two), 1))
		s.active(account, 1)
	}},
	{"treat Begin as a renewal if the epoch is alive", func(s *suite) {
		s.begin(one)
		s.take(slot(1, one))
		for range 4 {
			s.Pass(session.RenewEvery)
			s.begin(one)
			s.active(account, 1)
		}
	}},
	{"reject the renewal of an unknown epoch", func(s *suite) {
		conformance.Fails(s, s.Store.Renew(s.ctx, one), fault.Conflict)
		s.begin(two)
		conformance.Fails(s, s.Store.Renew(s.ctx, one), fault.Conflict)
	}},
	{"free all slots at the end of a lease, but not those of another", func(s *suite) {
		s.begin(one, two)
		s.take(slot(1, one), slot(2, one), slot(3, two))
		s.take(session.Slot{ID: "session_900", Account: "rival", Epoch: one})
		conformance.OK(s, s.Store.End(s.ctx, one))
		s.active(account, 1)
		s.active("rival", 0)
		conformance.OK(s, s.Store.Take(s.ctx, slot(4, two), 2))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(5, two), 2), fault.Limited)
		conformance.Fails(s, s.Store.Renew(s.ctx, one), fault.Conflict)
		conformance.Fails(s, s.Store.Take(s.ctx, slot(6, one), 0), fault.Conflict)
		conformance.OK(s, s.Store.End(s.ctx, one))
		s.active(account, 2)
	}},
	{"free hundreds of slots of a dead lease", func(s *suite) {
		const limit = 130
		s.begin(one, two)
		for n := range limit {
			s.take(slot(n, []string{one, one, two}[n%3]))
		}
		conformance.Fails(s, s.Store.Take(s.ctx, slot(901, two), limit), fault.Limited)
		conformance.OK(s, s.Store.End(s.ctx, one))
		const left = limit / 3
		s.active(account, left)
		conformance.OK(s, s.Store.Take(s.ctx, slot(901, two), left+1))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(902, two), left+1), fault.Limited)
		s.active(account, left+1)
	}},
	{"return the address of a lease while it is alive", func(s *suite) {
		hasAddress := func(epoch, want string) {
			s.Helper()
			got, err := s.Store.Address(s.ctx, epoch)
			conformance.OK(s, err)
			conformance.Same(s, "the address", got, want)
		}
		gone := func(epoch string) {
			s.Helper()
			_, err := s.Store.Address(s.ctx, epoch)
			conformance.Fails(s, err, fault.Conflict)
		}
		gone(one)
		conformance.OK(s, s.Store.Begin(s.ctx, one, "10.0.0.1:8080"))
		s.begin(two)
		hasAddress(one, "10.0.0.1:8080")
		hasAddress(two, "")
		s.Pass(session.RenewEvery)
		conformance.OK(s, s.Store.Renew(s.ctx, one))
		conformance.OK(s, s.Store.End(s.ctx, two))
		gone(two)
		s.Pass(session.TakeAfter - moment)
		hasAddress(one, "10.0.0.1:8080")
		s.Pass(moment)
		gone(one)
	}},
	{"accept the end of an unknown lease", func(s *suite) {
		conformance.OK(s, s.Store.End(s.ctx, one))
	}},
}
