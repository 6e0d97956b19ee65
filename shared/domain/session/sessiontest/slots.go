package sessiontest

import (
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
	"cutroom/shared/testkit/conformance"
)

var takeTests = []test{
	{"count taken slots", func(s *suite) {
		s.active(account, 0)
		s.begin(one)
		s.active(account, 0)
		s.take(slot(1, one))
		s.active(account, 1)
		s.take(slot(2, one))
		s.active(account, 2)
	}},
	{"reject slots over the limit, and take freed slots again", func(s *suite) {
		s.begin(one, two)
		for i, epoch := range []string{one, two, one} {
			conformance.OK(s, s.Store.Take(s.ctx, slot(i, epoch), 3))
		}
		conformance.Fails(s, s.Store.Take(s.ctx, slot(4, one), 3), fault.Limited)
		conformance.Fails(s, s.Store.Take(s.ctx, slot(5, two), 3), fault.Limited)
		s.active(account, 3)
		conformance.OK(s, s.Store.Free(s.ctx, slot(1, two)))
		conformance.OK(s, s.Store.Take(s.ctx, slot(6, one), 3))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(7, one), 3), fault.Limited)
		s.active(account, 3)
	}},
	{"treat a limit of 0 as unlimited", func(s *suite) {
		s.begin(one)
		for i := range 20 {
			s.take(slot(i, one))
		}
		s.active(account, 20)
	}},
	{"respect a lowered limit", func(s *suite) {
		s.begin(one)
		s.take(slot(1, one), slot(2, one), slot(3, one))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(4, one), 2), fault.Limited)
		conformance.OK(s, s.Store.Free(s.ctx, slot(1, one)))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(4, one), 2), fault.Limited)
		conformance.OK(s, s.Store.Free(s.ctx, slot(2, one)))
		conformance.OK(s, s.Store.Take(s.ctx, slot(4, one), 2))
		s.active(account, 2)
	}},
	{"take a slot once, even if the call is repeated", func(s *suite) {
		s.begin(one)
		for range 3 {
			conformance.OK(s, s.Store.Take(s.ctx, slot(1, one), 1))
		}
		s.active(account, 1)
		conformance.OK(s, s.Store.Free(s.ctx, slot(1, one)))
		s.active(account, 0)
	}},
	{"count each account separately", func(s *suite) {
		s.begin(one)
		rival := session.Slot{ID: slot(1, one).ID, Account: "rival", Epoch: one}
		conformance.OK(s, s.Store.Take(s.ctx, slot(1, one), 1))
		conformance.OK(s, s.Store.Take(s.ctx, rival, 1))
		s.active(account, 1)
		s.active("rival", 1)
		s.active("acm", 0)
		conformance.OK(s, s.Store.Free(s.ctx, rival))
		s.active(account, 1)
		s.active("rival", 0)
	}},
	{"reject an unknown epoch", func(s *suite) {
		conformance.Fails(s, s.Store.Take(s.ctx, slot(1, one), 1), fault.Conflict)
		s.begin(two)
		conformance.Fails(s, s.Store.Take(s.ctx, slot(1, one), 1), fault.Conflict)
		s.active(account, 0)
	}},
}

var freeTests = []test{
	{"accept freeing a free slot", func(s *suite) {
		s.begin(one)
		conformance.OK(s, s.Store.Free(s.ctx, slot(1, one)))
		s.take(slot(1, one), slot(2, one))
		for range 3 {
			conformance.OK(s, s.Store.Free(s.ctx, slot(1, one)))
		}
		s.active(account, 1)
		conformance.OK(s, s.Store.Take(s.ctx, slot(3, one), 2))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(4, one), 2), fault.Limited)
	}},
	{"not free the slot that another epoch took later", func(s *suite) {
		s.begin(one, two)
		conformance.OK(s, s.Store.Take(s.ctx, slot(1, one), 1))
		s.Pass(session.TakeAfter - moment)
		conformance.OK(s, s.Store.Renew(s.ctx, two))
		s.Pass(moment)
		conformance.OK(s, s.Store.Take(s.ctx, slot(2, two), 1))
		conformance.OK(s, s.Store.Free(s.ctx, slot(1, one)))
		s.active(account, 1)
		conformance.Fails(s, s.Store.Take(s.ctx, slot(3, two), 1), fault.Limited)
	}},
	{"accept freeing for an ended or unknown epoch", func(s *suite) {
		s.begin(one)
		s.take(slot(1, one))
		conformance.OK(s, s.Store.End(s.ctx, one))
		conformance.OK(s, s.Store.Free(s.ctx, slot(1, one)))
		conformance.OK(s, s.Store.Free(s.ctx, slot(1, two)))
		s.active(account, 0)
	}},
}
