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
	// PollEvery is the interval at which an instance reads a queue of its waiting clients, so that it
	// takes a slot freed elsewhere within a second.
	PollEvery = 750 * time.Millisecond
	// TicketLife is the lifetime of a ticket after its last renewal, on the store's clock.
	TicketLife        = 6 * time.Second
	RenewTicketsEvery = 2 * time.Second
	// NotifyEvery is the interval at which a waiting client receives its place, even if it is
	// unchanged (docs/contract/realtime.md#the-queue).
	NotifyEvery = time.Second
	// LongestQueue limits a queue even if a tier allows more.
	LongestQueue = 1000
)

type Ticket struct {
	ID string
	// Number orders the queue. 0 requests the next number.
	Number int64
	// Longest limits the queue when this ticket joins it.
	Longest int
}

// Queue is an account's queue by holder: an instance's clients in the queue. Stores keep it as
// text.
type Queue map[string]holding

type holding struct {
	// Expires is in milliseconds of the store's time.
	Expires int64            `json:"expires"`
	Tickets map[string]int64 `json:"tickets"` // numbers by id
}

func ParseQueue(text string) (Queue, error) {
	q := Queue{}
	if text == "" {
		return q, nil
	}
	err := json.Unmarshal([]byte(text), &q)
	return q, err
}

// String returns an empty text for a queue without tickets.
func (q Queue) String() string {
	if len(q) == 0 {
		return ""
	}
	text, _ := json.Marshal(q) // encoding numbers does not fail
	return string(text)
}

// Tickets returns the valid tickets in order.
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

// Renew replaces the tickets of the holder (see [Store].RenewTickets). It reports whether the queue
// changed.
func (q Queue) Renew(holder string, own []Ticket, now time.Duration) bool {
	var last int64
	others := 0
	for name, part := range q {
		for _, number := range part.Tickets {
			last = max(last, number)
		}
		if name != holder && !part.expired(now) {
			others += len(part.Tickets)
		}
	}
	for _, ticket := range own {
		last = max(last, ticket.Number)
	}
	before, after := q[holder], holding{(now + TicketLife).Milliseconds(), map[string]int64{}}
	for _, ticket := range own {
		number, known := before.Tickets[ticket.ID]
		switch {
		case known:
		case others+len(after.Tickets) >= ticket.Longest:
			continue
		case ticket.Number > 0:
			number = ticket.Number
		default:
			last++
			number = last
		}
		after.Tickets[ticket.ID] = number
	}
	young := len(after.Tickets) == 0 || after.Expires-before.Expires < RenewTicketsEvery.Milliseconds()
	if young && maps.Equal(before.Tickets, after.Tickets) {
		return false
	}
	q[holder] = after
	maps.DeleteFunc(q, func(_ string, part holding) bool { return part.expired(now) || len(part.Tickets) == 0 })
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

// Admits reports whether a session may take one of the free slots: with a ticket if the number of
// tickets before it is less than free, without a ticket if the queue is empty.
func Admits(queue []Ticket, id string, free int) bool {
	at := slices.IndexFunc(queue, func(t Ticket) bool { return t.ID == id })
	if at < 0 {
		return len(queue) == 0 && free > 0
	}
	return at < free
}
