package sessiontest

import (
	"slices"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
	"cutroom/shared/testkit/conformance"
)

// longest is how long the lines of the tests may be, where that matters.
const longest = 100

// join puts tickets into the line and returns their numbers.
func (s *suite) join(tickets ...session.Slot) (numbers []int64) {
	s.Helper()
	for _, ticket := range tickets {
		number, err := s.Store.Join(s.ctx, ticket, 0, longest)
		conformance.OK(s, err)
		numbers = append(numbers, number)
	}
	return numbers
}

// line checks which sessions wait, in order, as an instance sees it.
func (s *suite) line(epoch string, want ...session.Slot) {
	s.Helper()
	line, err := s.Store.Look(s.ctx, account, epoch)
	conformance.OK(s, err)
	conformance.SameList(s, "the line", line.Tickets, want)
}

// full begins two leases and takes the account's only slot, which is returned.
func (s *suite) full() session.Slot {
	s.Helper()
	s.begin(one, two)
	s.take(slot(0, one))
	return slot(0, one)
}

var lineTests = []test{
	{"keep the order in which tickets were drawn, whoever drew them", func(s *suite) {
		s.full()
		want := []session.Slot{slot(3, two), slot(1, one), slot(2, two)}
		numbers := s.join(want...)
		if numbers[0] <= 0 || !slices.IsSorted(numbers) {
			s.Errorf("the numbers are %d", numbers)
		}
		s.line(one, want...)
		s.line(two, want...)
		s.active(account, 1)
	}},
	{"tell how many slots are taken", func(s *suite) {
		s.full()
		line, err := s.Store.Look(s.ctx, account, one)
		conformance.OK(s, err)
		if line.Taken != 1 || len(line.Tickets) != 0 {
			s.Errorf("the line is %+v", line)
		}
	}},
	{"draw a ticket once, however often that is repeated", func(s *suite) {
		s.full()
		first := s.join(slot(1, one), slot(2, one))
		again := s.join(slot(1, one), slot(2, one))
		conformance.Same(s, "the numbers", again, first)
		s.line(one, slot(1, one), slot(2, one))
	}},
	{"refuse a ticket when the line is full, and not when one has left", func(s *suite) {
		s.full()
		s.join(slot(1, one), slot(2, two))
		_, err := s.Store.Join(s.ctx, slot(3, one), 0, 2)
		conformance.Fails(s, err, fault.Limited)
		s.line(one, slot(1, one), slot(2, two))
		for range 2 {
			conformance.OK(s, s.Store.Leave(s.ctx, slot(1, one)))
		}
		_, err = s.Store.Join(s.ctx, slot(3, one), 0, 2)
		conformance.OK(s, err)
		s.line(one, slot(2, two), slot(3, one))
	}},
	{"refuse a ticket of an epoch that never began, or is over", func(s *suite) {
		_, err := s.Store.Join(s.ctx, slot(1, one), 0, longest)
		conformance.Fails(s, err, fault.Conflict)
		s.begin(one)
		conformance.OK(s, s.Store.End(s.ctx, one))
		_, err = s.Store.Join(s.ctx, slot(1, one), 0, longest)
		conformance.Fails(s, err, fault.Conflict)
	}},
	{"leave no line that one is not in", func(s *suite) {
		s.full()
		s.join(slot(1, one))
		conformance.OK(s, s.Store.Leave(s.ctx, slot(2, one)))
		conformance.OK(s, s.Store.Leave(s.ctx, slot(1, two)))
		s.line(one, slot(1, one))
	}},
	{"keep the line of each account separately", func(s *suite) {
		s.full()
		rival := session.Slot{ID: slot(1, one).ID, Account: "rival", Epoch: one}
		s.join(slot(1, one), rival)
		s.line(one, slot(1, one))
		conformance.OK(s, s.Store.Leave(s.ctx, rival))
		s.line(one, slot(1, one))
		conformance.OK(s, s.Store.Take(s.ctx, session.Slot{ID: "session_9", Account: "rival", Epoch: one}, 1))
	}},
	{"not let who comes overtake who waits", func(s *suite) {
		held := s.full()
		s.join(slot(1, two))
		conformance.OK(s, s.Store.Free(s.ctx, held))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(2, one), 1), fault.Limited)
		conformance.Fails(s, s.Store.Take(s.ctx, slot(2, one), 5), fault.Limited)
		s.active(account, 0)
		conformance.OK(s, s.Store.Leave(s.ctx, slot(1, two)))
		conformance.OK(s, s.Store.Take(s.ctx, slot(2, one), 1))
	}},
	{"keep nobody waiting who has no limit", func(s *suite) {
		s.full()
		s.join(slot(1, two))
		conformance.OK(s, s.Store.Take(s.ctx, slot(2, one), 0))
		conformance.OK(s, s.Store.Redeem(s.ctx, slot(1, two), 0))
		s.active(account, 3)
	}},
	{"take all tickets of a lease that ends out of their lines at once", func(s *suite) {
		s.full()
		s.join(slot(1, two), slot(2, one), slot(3, two))
		conformance.OK(s, s.Store.End(s.ctx, two))
		s.line(one, slot(2, one))
		conformance.OK(s, s.Store.Free(s.ctx, slot(0, one)))
		conformance.OK(s, s.Store.Redeem(s.ctx, slot(2, one), 1))
	}},
}

var turnTests = []test{
	{"give the slot that is freed to who is next, and to nobody else", func(s *suite) {
		held := s.full()
		s.join(slot(1, two), slot(2, one))
		conformance.Fails(s, s.Store.Redeem(s.ctx, slot(1, two), 1), fault.Limited)
		conformance.OK(s, s.Store.Free(s.ctx, held))
		conformance.Fails(s, s.Store.Redeem(s.ctx, slot(2, one), 1), fault.Limited)
		conformance.OK(s, s.Store.Redeem(s.ctx, slot(1, two), 1))
		s.active(account, 1)
		s.line(one, slot(2, one))
		conformance.Fails(s, s.Store.Redeem(s.ctx, slot(2, one), 1), fault.Limited)
		conformance.OK(s, s.Store.Free(s.ctx, slot(1, two)))
		conformance.OK(s, s.Store.Redeem(s.ctx, slot(2, one), 1))
		s.line(one)
	}},
	{"give as many slots as are free to as many as are first, in any order", func(s *suite) {
		s.full()
		s.join(slot(1, one), slot(2, two), slot(3, one))
		conformance.Fails(s, s.Store.Redeem(s.ctx, slot(3, one), 3), fault.Limited)
		conformance.OK(s, s.Store.Redeem(s.ctx, slot(2, two), 3))
		conformance.Fails(s, s.Store.Redeem(s.ctx, slot(3, one), 3), fault.Limited)
		conformance.OK(s, s.Store.Redeem(s.ctx, slot(1, one), 3))
		conformance.Fails(s, s.Store.Redeem(s.ctx, slot(3, one), 3), fault.Limited)
		s.active(account, 3)
		s.line(one, slot(3, one))
	}},
	{"redeem a ticket once, however often that is repeated", func(s *suite) {
		s.begin(one)
		s.join(slot(1, one))
		for range 3 {
			conformance.OK(s, s.Store.Redeem(s.ctx, slot(1, one), 1))
		}
		s.active(account, 1)
		s.line(one)
		conformance.OK(s, s.Store.Free(s.ctx, slot(1, one)))
		s.active(account, 0)
	}},
	{"redeem no ticket that is in no line", func(s *suite) {
		s.begin(one)
		conformance.Fails(s, s.Store.Redeem(s.ctx, slot(1, one), 1), fault.NotFound)
		s.join(slot(1, one))
		conformance.OK(s, s.Store.Leave(s.ctx, slot(1, one)))
		conformance.Fails(s, s.Store.Redeem(s.ctx, slot(1, one), 1), fault.NotFound)
		s.active(account, 0)
	}},
	{"redeem no ticket of a dead epoch", func(s *suite) {
		s.begin(one, two)
		s.join(slot(1, one))
		s.take(slot(9, one))
		s.Pass(session.TakeAfter)
		conformance.OK(s, s.Store.Begin(s.ctx, "epoch-three", ""))
		conformance.OK(s, s.Store.Take(s.ctx, slot(2, "epoch-three"), 1)) // which marks the epoch as dead
		if err := s.Store.Redeem(s.ctx, slot(1, one), 5); !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound) {
			s.Errorf("the ticket of a dead epoch: %v", err)
		}
		s.active(account, 1)
	}},
	{"redeem in place of the sessions of a lease that is dead", func(s *suite) {
		s.full()
		s.Pass(session.TakeAfter - moment)
		conformance.OK(s, s.Store.Renew(s.ctx, two))
		s.join(slot(1, two))
		conformance.Fails(s, s.Store.Redeem(s.ctx, slot(1, two), 1), fault.Limited)
		s.Pass(moment)
		line, err := s.Store.Look(s.ctx, account, two)
		conformance.OK(s, err)
		if line.Taken != 0 {
			s.Errorf("%d slots are taken", line.Taken)
		}
		conformance.OK(s, s.Store.Redeem(s.ctx, slot(1, two), 1))
		s.active(account, 1)
	}},
}

var silenceTests = []test{
	{"keep the tickets of an instance that looks, for all accounts that it looks at", func(s *suite) {
		s.full()
		rival := session.Slot{ID: "session_5", Account: "rival", Epoch: two}
		s.join(slot(1, two), slot(2, one), slot(3, two), rival)
		for range 10 {
			s.Pass(session.HereEvery)
			s.line(two, slot(1, two), slot(2, one), slot(3, two))
			s.line(one, slot(1, two), slot(2, one), slot(3, two))
		}
		line, err := s.Store.Look(s.ctx, "rival", one)
		conformance.OK(s, err)
		conformance.SameList(s, "the line that nobody looked at", line.Tickets, nil)
	}},
	{"pass over the tickets of an instance that is silent, from GoneAfter on", func(s *suite) {
		s.full()
		s.join(slot(1, two), slot(2, one))
		s.Pass(session.GoneAfter - moment)
		s.line(one, slot(1, two), slot(2, one))
		conformance.OK(s, s.Store.Free(s.ctx, slot(0, one)))
		conformance.Fails(s, s.Store.Redeem(s.ctx, slot(2, one), 1), fault.Limited)
		s.Pass(moment)
		s.line(one, slot(2, one))
		conformance.OK(s, s.Store.Redeem(s.ctx, slot(2, one), 1))
	}},
	{"let who comes have the slot when all who waited are silent", func(s *suite) {
		s.full()
		s.join(slot(1, two), slot(2, two))
		conformance.OK(s, s.Store.Free(s.ctx, slot(0, one)))
		s.Pass(session.GoneAfter - moment)
		conformance.Fails(s, s.Store.Take(s.ctx, slot(3, one), 1), fault.Limited)
		s.Pass(moment)
		conformance.OK(s, s.Store.Take(s.ctx, slot(3, one), 1))
		s.line(one)
	}},
	{"not count the silent against the length of the line", func(s *suite) {
		s.full()
		s.join(slot(1, two), slot(2, two))
		s.Pass(session.GoneAfter)
		for n := 3; n < 5; n++ {
			_, err := s.Store.Join(s.ctx, slot(n, one), 0, 2)
			conformance.OK(s, err)
		}
		_, err := s.Store.Join(s.ctx, slot(5, one), 0, 2)
		conformance.Fails(s, err, fault.Limited)
		s.line(one, slot(3, one), slot(4, one))
	}},
	{"give a ticket that comes back its place before those who came later", func(s *suite) {
		s.full()
		numbers := s.join(slot(1, one), slot(2, two))
		s.Pass(session.GoneAfter - moment)
		s.line(one, slot(1, one), slot(2, two))
		s.Pass(moment)
		s.line(one, slot(1, one))
		s.join(slot(3, one))
		again, err := s.Store.Join(s.ctx, slot(2, two), numbers[1], longest)
		conformance.OK(s, err)
		if again != numbers[1] {
			s.Errorf("the number is %d, was %d", again, numbers[1])
		}
		s.line(one, slot(1, one), slot(2, two), slot(3, one))
	}},
	{"give a ticket its place under another epoch of its instance", func(s *suite) {
		s.full()
		numbers := s.join(slot(1, one), slot(2, one))
		conformance.OK(s, s.Store.End(s.ctx, one))
		again, err := s.Store.Join(s.ctx, slot(1, two), numbers[0], longest)
		conformance.OK(s, err)
		if again != numbers[0] {
			s.Errorf("the number is %d, was %d", again, numbers[0])
		}
		s.line(two, slot(1, two))
		conformance.OK(s, s.Store.Redeem(s.ctx, slot(1, two), 1))
	}},
}

var lineRaceTests = []test{
	{"let exactly as many wait as the line takes", func(s *suite) {
		const most = 7
		s.full()
		won := conformance.Winners(s, conformance.Race(racers, func(i int) error {
			_, err := s.Store.Join(s.ctx, slot(i+1, []string{one, two}[i%2]), 0, most)
			return err
		}), fault.Limited)
		line, err := s.Store.Look(s.ctx, account, one)
		conformance.OK(s, err)
		if len(won) != most || len(line.Tickets) != most {
			s.Errorf("%d tickets were drawn and %d wait, want %d", len(won), len(line.Tickets), most)
		}
	}},
	{"give free slots to the first alone, when all try at once", func(s *suite) {
		const limit = 3
		s.begin(one, two)
		var tickets []session.Slot
		for i := range racers {
			tickets = append(tickets, slot(i, []string{one, two}[i%2]))
		}
		s.join(tickets...)
		won := conformance.Winners(s, conformance.Race(racers, func(i int) error {
			return s.Store.Redeem(s.ctx, tickets[i], limit)
		}), fault.Limited)
		conformance.SameList(s, "who was served", won, []int{0, 1, 2})
		s.active(account, limit)
		s.line(one, tickets[limit:]...)
	}},
	{"join, leave, redeem and free at once without losing count", func(s *suite) {
		const limit = 2
		s.begin(one, two)
		for _, err := range conformance.Race(8, func(racer int) error {
			ticket := slot(racer, []string{one, two}[racer%2])
			for {
				if _, err := s.Store.Join(s.ctx, ticket, 0, longest); err != nil {
					return err
				}
				if racer%4 == 3 {
					return s.Store.Leave(s.ctx, ticket)
				}
				switch err := s.Store.Redeem(s.ctx, ticket, limit); {
				case fault.Is(err, fault.Limited):
				case err != nil:
					return err
				default:
					return s.Store.Free(s.ctx, ticket)
				}
			}
		}) {
			conformance.OK(s, err)
		}
		s.line(one)
		s.active(account, 0)
		conformance.OK(s, s.Store.Take(s.ctx, slot(50, one), 1))
	}},
}
