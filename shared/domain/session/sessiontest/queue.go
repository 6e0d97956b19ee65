package sessiontest

import (
	"fmt"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
	"cutroom/shared/testkit/conformance"
)

const longest = 100

func ticket(number int) session.Ticket {
	return session.Ticket{ID: slot(number, one).ID, Longest: longest}
}

// holds renews the holder's tickets and then checks the queue.
func (s *suite) holds(holder string, own []session.Ticket, want ...int) {
	s.Helper()
	tickets, _, err := s.Store.RenewTickets(s.ctx, account, holder, own)
	conformance.OK(s, err)
	s.queued(tickets, want...)
}

func (s *suite) queued(tickets []session.Ticket, want ...int) {
	s.Helper()
	var ids, wanted []string
	last := int64(0)
	for _, ticket := range tickets {
		if ticket.Number < last {
			s.Errorf("the numbers are not in order: %v", tickets)
		}
		last = ticket.Number
		ids = append(ids, ticket.ID)
	}
	for _, number := range want {
		wanted = append(wanted, slot(number, one).ID)
	}
	conformance.SameList(s, "the queue", ids, wanted)
}

func (s *suite) queue(want ...int) {
	s.Helper()
	s.holds("nobody", nil, want...)
}

// full begins two leases and takes the account's only slot.
func (s *suite) full() session.Slot {
	s.Helper()
	s.begin(one, two)
	s.take(slot(0, one))
	return slot(0, one)
}

func tickets(numbers ...int) (all []session.Ticket) {
	for _, number := range numbers {
		all = append(all, ticket(number))
	}
	return all
}

var queueTests = []test{
	{"keep the order in which tickets were added, whoever holds them", func(s *suite) {
		s.full()
		s.holds(one, tickets(3), 3)
		s.holds(two, tickets(1), 3, 1)
		s.holds(one, tickets(3, 2), 3, 1, 2)
		s.holds(two, tickets(1, 5, 4), 3, 1, 2, 5, 4)
		s.active(account, 1)
	}},
	{"return the number of taken slots", func(s *suite) {
		s.full()
		_, taken, err := s.Store.RenewTickets(s.ctx, account, one, nil)
		conformance.OK(s, err)
		conformance.Same(s, "the slots", taken, 1)
		s.Pass(session.TakeAfter)
		_, taken, err = s.Store.RenewTickets(s.ctx, account, two, tickets(1))
		conformance.OK(s, err)
		conformance.Same(s, "the slots after the end of the lease", taken, 0)
	}},
	{"assign a number once, even if the call is repeated", func(s *suite) {
		s.full()
		s.holds(one, tickets(1), 1)
		s.holds(two, tickets(2), 1, 2)
		s.holds(one, tickets(1), 1, 2)
		s.holds(two, tickets(2), 1, 2)
	}},
	{"remove the tickets that a holder no longer has, and no others", func(s *suite) {
		s.full()
		s.holds(one, tickets(1, 2), 1, 2)
		s.holds(two, tickets(3), 1, 2, 3)
		s.holds(one, tickets(2), 2, 3)
		for range 2 {
			s.holds(one, nil, 3)
		}
		s.holds(two, nil)
	}},
	{"omit a ticket while the queue is too long", func(s *suite) {
		s.full()
		short := func(number int) session.Ticket { return session.Ticket{ID: ticket(number).ID, Longest: 2} }
		s.holds(one, []session.Ticket{short(1)}, 1)
		s.holds(two, []session.Ticket{short(2), short(3)}, 1, 2)
		s.holds(one, []session.Ticket{short(1)}, 1, 2)
		s.holds(two, []session.Ticket{short(2), ticket(4)}, 1, 2, 4)
		s.holds(one, nil, 2, 4)
		s.holds(one, []session.Ticket{short(5)}, 2, 4)
		s.holds(two, []session.Ticket{short(2)}, 2)
		s.holds(one, []session.Ticket{short(5)}, 2, 5)
	}},
	{"keep the queue of each account separately", func(s *suite) {
		s.full()
		s.holds(one, tickets(1), 1)
		for _, own := range [][]session.Ticket{tickets(1), nil} {
			waiting, _, err := s.Store.RenewTickets(s.ctx, "rival", one, own)
			conformance.OK(s, err)
			conformance.Same(s, "the length of the queue", len(waiting), len(own))
		}
		s.queue(1)
		conformance.OK(s, s.Store.Take(s.ctx, session.Slot{ID: "session_9", Account: "rival", Epoch: one}, 1))
	}},
	{"give no slot to a session without a ticket while others wait", func(s *suite) {
		held := s.full()
		s.holds(two, tickets(1), 1)
		conformance.OK(s, s.Store.Free(s.ctx, held))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(2, one), 1), fault.Limited)
		conformance.Fails(s, s.Store.Take(s.ctx, slot(2, one), 5), fault.Limited)
		s.active(account, 0)
		s.holds(two, nil)
		conformance.OK(s, s.Store.Take(s.ctx, slot(2, one), 1))
	}},
	{"ignore the queue for a session without a limit", func(s *suite) {
		s.full()
		s.holds(two, tickets(1), 1)
		conformance.OK(s, s.Store.Take(s.ctx, slot(2, one), 0))
		s.active(account, 2)
	}},
	{"give a freed slot to the first ticket only", func(s *suite) {
		held := s.full()
		s.holds(two, tickets(1), 1)
		s.holds(one, tickets(2), 1, 2)
		conformance.Fails(s, s.Store.Take(s.ctx, slot(1, two), 1), fault.Limited)
		conformance.OK(s, s.Store.Free(s.ctx, held))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(2, one), 1), fault.Limited)
		for range 3 {
			conformance.OK(s, s.Store.Take(s.ctx, slot(1, two), 1))
		}
		s.active(account, 1)
		s.queue(2)
		conformance.Fails(s, s.Store.Take(s.ctx, slot(2, one), 1), fault.Limited)
		conformance.OK(s, s.Store.Free(s.ctx, slot(1, two)))
		conformance.OK(s, s.Store.Take(s.ctx, slot(2, one), 1))
		s.queue()
		conformance.OK(s, s.Store.Free(s.ctx, slot(2, one)))
		s.active(account, 0)
	}},
	{"give n free slots to the first n tickets, in any order", func(s *suite) {
		s.full()
		s.holds(one, tickets(1), 1)
		s.holds(two, tickets(2, 3), 1, 2, 3)
		conformance.Fails(s, s.Store.Take(s.ctx, slot(3, two), 3), fault.Limited)
		conformance.OK(s, s.Store.Take(s.ctx, slot(2, two), 3))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(3, two), 3), fault.Limited)
		conformance.OK(s, s.Store.Take(s.ctx, slot(1, one), 3))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(3, two), 3), fault.Limited)
		s.active(account, 3)
		s.queue(3)
	}},
	{"give no slot to a ticket under an ended lease", func(s *suite) {
		held := s.full()
		s.holds(two, tickets(1), 1)
		conformance.OK(s, s.Store.End(s.ctx, two))
		conformance.OK(s, s.Store.Free(s.ctx, held))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(1, two), 1), fault.Conflict)
		conformance.OK(s, s.Store.Take(s.ctx, slot(1, one), 1))
		s.active(account, 1)
		s.queue()
	}},
	{"give the slots of a dead lease to the first ticket", func(s *suite) {
		s.full()
		s.Pass(session.TakeAfter - moment)
		conformance.OK(s, s.Store.Renew(s.ctx, two))
		s.holds(two, tickets(1), 1)
		conformance.Fails(s, s.Store.Take(s.ctx, slot(1, two), 1), fault.Limited)
		s.Pass(moment)
		conformance.OK(s, s.Store.Take(s.ctx, slot(1, two), 1))
		s.active(account, 1)
	}},
	{"keep the tickets of a holder that renews them, and no others", func(s *suite) {
		s.full()
		s.holds(two, tickets(1), 1)
		s.holds(one, tickets(2), 1, 2)
		for range 3 {
			s.Pass(session.RenewTicketsEvery)
			s.holds(one, tickets(2), 1, 2)
			s.Pass(session.RenewTicketsEvery)
			s.holds(two, tickets(1), 1, 2)
		}
		s.Pass(session.TicketLife - moment)
		s.queue(1) // the other holder last renewed its tickets earlier, so they have expired
	}},
	{"count the tickets of a silent holder for TicketLife", func(s *suite) {
		s.full()
		s.holds(two, tickets(1), 1)
		s.Pass(moment)
		s.holds(one, tickets(2), 1, 2)
		s.Pass(session.TicketLife - 2*moment)
		s.queue(1, 2)
		conformance.OK(s, s.Store.Free(s.ctx, slot(0, one)))
		conformance.Fails(s, s.Store.Take(s.ctx, slot(2, one), 1), fault.Limited)
		s.Pass(moment)
		s.queue(2)
		conformance.OK(s, s.Store.Take(s.ctx, slot(2, one), 1))
	}},
	{"give the slot to anyone when all holders are silent", func(s *suite) {
		s.full()
		s.holds(two, tickets(1, 2), 1, 2)
		conformance.OK(s, s.Store.Free(s.ctx, slot(0, one)))
		s.Pass(session.TicketLife - moment)
		conformance.Fails(s, s.Store.Take(s.ctx, slot(3, one), 1), fault.Limited)
		s.Pass(moment)
		conformance.OK(s, s.Store.Take(s.ctx, slot(3, one), 1))
		s.queue()
	}},
	{"give the places of silent holders to others when the queue is full", func(s *suite) {
		s.full()
		s.holds(two, tickets(1), 1)
		s.Pass(session.TicketLife - moment)
		own := []session.Ticket{{ID: ticket(2).ID, Longest: 1}}
		s.holds(one, own, 1)
		s.Pass(moment)
		s.holds(one, own, 2)
		s.holds(one, []session.Ticket{{ID: ticket(3).ID, Longest: 1}, own[0]}, 2)
	}},
	{"give a returning ticket its place before later tickets", func(s *suite) {
		s.full()
		s.holds(one, tickets(1), 1)
		waiting, _, err := s.Store.RenewTickets(s.ctx, account, two, tickets(2))
		conformance.OK(s, err)
		s.Pass(session.TicketLife)
		s.holds(one, tickets(1, 3), 1, 3)
		back := ticket(2)
		back.Number = waiting[1].Number
		s.holds(two, []session.Ticket{back}, 1, 2, 3)
	}},
	{"keep the place of a client that has left for ReturnTime", func(s *suite) {
		s.full()
		of := func(number int, client string) session.Ticket {
			return session.Ticket{ID: ticket(number).ID, Longest: 3, Client: client}
		}
		gone := func(number int, client string) session.Ticket {
			left := of(number, client)
			left.Left = true
			return left
		}
		s.holds(one, []session.Ticket{of(1, "a"), of(2, "b")}, 1, 2)
		s.holds(one, []session.Ticket{gone(1, "a"), of(2, "b")}, 2)
		s.holds(two, []session.Ticket{of(3, "c"), of(4, "d")}, 2, 3) // the place of a counts
		s.Pass(session.RenewTicketsEvery)
		s.holds(one, []session.Ticket{of(2, "b")}, 2, 3)
		s.holds(two, []session.Ticket{of(3, "c"), of(5, "a")}, 5, 2, 3)
		s.holds(two, []session.Ticket{of(3, "c"), gone(5, "a")}, 2, 3)
		s.holds(one, []session.Ticket{gone(2, "b")}, 3)
		s.holds(two, []session.Ticket{gone(3, "c")})
		// A slot does not wait for clients that have left.
		conformance.OK(s, s.Store.Free(s.ctx, slot(0, one)))
		conformance.OK(s, s.Store.Take(s.ctx, slot(6, one), 1))
		s.Pass(session.ReturnTime - moment)
		s.holds(one, []session.Ticket{of(7, "b")}, 7)
		s.holds(two, []session.Ticket{of(8, "a")}, 8, 7)
		s.Pass(moment)
		s.holds(one, []session.Ticket{of(7, "b"), of(9, "c")}, 8, 7, 9)
	}},
}

var queueRaceTests = []test{
	{"let exactly as many wait as the queue allows", func(s *suite) {
		const most = 7
		s.full()
		for _, err := range conformance.Race(racers, func(i int) error {
			own := []session.Ticket{{ID: fmt.Sprint("ticket", i), Longest: most}}
			_, _, err := s.Store.RenewTickets(s.ctx, account, fmt.Sprint("holder", i), own)
			return err
		}) {
			conformance.OK(s, err)
		}
		tickets, _, err := s.Store.RenewTickets(s.ctx, account, one, nil)
		conformance.OK(s, err)
		conformance.Same(s, "the length of the queue", len(tickets), most)
	}},
	{"give free slots only to the first tickets when all try concurrently", func(s *suite) {
		const limit = 3
		s.begin(one, two)
		var all, first []int
		for i := range racers {
			all = append(all, i)
			if i < racers/2 {
				first = append(first, i)
			}
		}
		s.holds(one, tickets(first...), first...)
		s.holds(two, tickets(all[racers/2:]...), all...)
		won := conformance.Winners(s, conformance.Race(racers, func(i int) error {
			return s.Store.Take(s.ctx, slot(i, []string{one, two}[i%2]), limit)
		}), fault.Limited)
		conformance.SameList(s, "the sessions", won, []int{0, 1, 2})
		s.active(account, limit)
		s.queue(all[limit:]...)
	}},
	{"wait, leave, take and free concurrently without miscounting", func(s *suite) {
		const limit = 2
		s.begin(one, two)
		for _, err := range conformance.Race(8, func(racer int) error {
			own, holder := slot(racer, []string{one, two}[racer%2]), fmt.Sprint("holder", racer)
			for {
				if _, _, err := s.Store.RenewTickets(s.ctx, account, holder, tickets(racer)); err != nil {
					return err
				}
				if racer%4 == 3 {
					_, _, err := s.Store.RenewTickets(s.ctx, account, holder, nil)
					return err
				}
				switch err := s.Store.Take(s.ctx, own, limit); {
				case fault.Is(err, fault.Limited):
				case err != nil:
					return err
				default:
					return s.Store.Free(s.ctx, own)
				}
			}
		}) {
			conformance.OK(s, err)
		}
		s.queue()
		s.active(account, 0)
		conformance.OK(s, s.Store.Take(s.ctx, slot(50, one), 1))
	}},
}
