package session

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// PollEvery is how often an instance reads a queue with waiting clients. A slot that another instance frees is
	// therefore taken within a second.
	PollEvery = 750 * time.Millisecond
	// TicketLife is how long a ticket remains valid after its last renewal, on the store's clock.
	TicketLife        = 6 * time.Second
	RenewTicketsEvery = 2 * time.Second
	// NotifyEvery is how often a waiting client is sent its place, even if the place is unchanged
	// (docs/contract/realtime.md#the-queue).
	NotifyEvery = time.Second
	// ReturnTime is how long the place of a client that has left is kept for it.
	ReturnTime = 30 * time.Second
	// LongestQueue limits every queue, even if a tier allows a longer one.
	LongestQueue = 1000
)

type Ticket struct {
	ID string
	// Number determines the order in the queue. 0 requests a new number.
	Number int64
	// Longest is the maximum length of the queue, including this ticket.
	Longest int
	// Client identifies a client that may come back. It may be empty.
	Client string
	// Left means that the client has left. If it comes back within ReturnTime, its new ticket gets the same number.
	Left bool
}

// Queue is an account's queue. Its keys are holders, and each value contains the tickets of one instance's clients.
// Stores keep a queue as a string.
type Queue map[string]holding

// Times are in milliseconds on the store's clock.
type holding struct {
	Expires int64            `json:"expires"`
	Tickets map[string]int64 `json:"tickets"` // numbers by id
	Absent  []absence        `json:"absent,omitempty"`
}

type absence struct {
	Client string `json:"client"`
	Number int64  `json:"number"`
	Until  int64  `json:"until"`
}

// absent is the holder of all absences. It has no tickets.
const absent = ""

func ParseQueue(text string) (Queue, error) {
	q := Queue{}
	if text == "" {
		return q, nil
	}
	err := json.Unmarshal([]byte(text), &q)
	return q, err
}

// String returns "" for a queue without tickets.
func (q Queue) String() string {
	if len(q) == 0 {
		return ""
	}
	text, _ := json.Marshal(q) // encoding numbers cannot fail
	return string(text)
}

// Tickets returns the valid tickets in queue order.
func (q Queue) Tickets(now time.Duration) (tickets []Ticket) {
	for _, part := range q {
		if !part.expired(now) {
			for id, number := range part.Tickets {
				tickets = append(tickets, Ticket{ID: id, Number: number})
			}
		}
	}
	slices.SortFunc(tickets, func(a, b Ticket) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(a.ID, b.ID))
	})
	return tickets
}

func (h holding) expired(now time.Duration) bool { return h.Expires <= now.Milliseconds() }

// Forget removes the absences that have lasted for longer than ReturnTime.
func (q Queue) Forget(now time.Duration) {
	q.setAbsent(slices.DeleteFunc(q[absent].Absent, func(one absence) bool { return one.Until <= now.Milliseconds() }))
}

func (q Queue) setAbsent(all []absence) {
	if delete(q, absent); len(all) > 0 {
		q[absent] = holding{Absent: all}
	}
}

// Renew replaces the holder's tickets (see [Store].RenewTickets). It reports whether the queue changed. Clients that
// have left count towards the length of the queue, so that they can come back.
func (q Queue) Renew(holder string, own []Ticket, now time.Duration) bool {
	q.Forget(now)
	away := q[absent].Absent
	var last int64
	waiting := len(away)
	for _, one := range away {
		last = max(last, one.Number)
	}
	for name, part := range q {
		for _, number := range part.Tickets {
			last = max(last, number)
		}
		if name != holder && !part.expired(now) {
			waiting += len(part.Tickets)
		}
	}
	before, after := q[holder], holding{Expires: (now + TicketLife).Milliseconds(), Tickets: map[string]int64{}}
	for _, ticket := range own {
		last = max(last, ticket.Number)
		if number, known := before.Tickets[ticket.ID]; known {
			waiting++
			if ticket.Left {
				away = append(away, absence{ticket.Client, number, (now + ReturnTime).Milliseconds()})
			}
		}
	}
	for _, ticket := range own {
		if ticket.Left {
			continue
		}
		number, known := before.Tickets[ticket.ID]
		back := slices.IndexFunc(away, func(one absence) bool { return one.Client == ticket.Client })
		switch {
		case known:
		case ticket.Number == 0 && back >= 0:
			number = away[back].Number
			away = slices.Delete(away, back, back+1)
		case waiting >= ticket.Longest:
			continue
		default:
			waiting++
			if number = ticket.Number; number == 0 {
				last++
				number = last
			}
		}
		after.Tickets[ticket.ID] = number
	}
	young := len(after.Tickets) == 0 || after.Expires-before.Expires < RenewTicketsEvery.Milliseconds()
	if young && maps.Equal(before.Tickets, after.Tickets) {
		return false
	}
	q[holder] = after
	maps.DeleteFunc(q, func(_ string, part holding) bool { return part.expired(now) || len(part.Tickets) == 0 })
	q.setAbsent(away)
	return true
}

func (q Queue) Remove(id string) bool {
	for holder, part := range q {
		if _, found := part.Tickets[id]; found {
			delete(part.Tickets, id)
			if len(part.Tickets) == 0 {
				delete(q, holder)
			}
			return true
		}
	}
	return false
}

// Admits reports whether a session may take one of the free slots. If the session has a ticket, fewer tickets must be
// ahead of it than slots are free. Otherwise, the queue must be empty.
func Admits(queue []Ticket, id string, free int) bool {
	at := slices.IndexFunc(queue, func(t Ticket) bool { return t.ID == id })
	if at < 0 {
		return len(queue) == 0 && free > 0
	}
	return at < free
}
