package session

import (
	"cmp"
	"context"
	"time"

	"cutroom/shared/domain/fault"
)

// Place is a client's place in a queue.
type Place struct {
	// Position is 1 for the next client. Size is the length of the queue.
	Position, Size int
}

// Limits are an account's limits.
type Limits struct {
	// Sessions limits open sessions, 0 means no limit.
	Sessions int
	// Line limits the queue, at most to LongestLine, which 0 stands for.
	Line int
}

// queue is an account's queue as seen by the waiting clients of this instance. One goroutine
// watches it for all of them.
type queue struct {
	account string
	// waiters are by ticket id. The instance's mutex guards them.
	waiters map[string]*waiter
	// kicked requests an immediate look after a change.
	kicked chan struct{}
	// stop ends the goroutine, which closes ended.
	stop  context.CancelFunc
	ended chan struct{}
}

func (q *queue) kick() { signal(q.kicked) }

// signal sends to a channel with a buffer of one, without blocking.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// waiter is a waiting client. The instance's mutex guards the fields below the channels.
type waiter struct {
	limits Limits
	// moved receives after a change of the place, turn when the wait is over.
	moved chan struct{}
	turn  chan outcome

	ticket Slot
	// number is 0 until the ticket is in the queue.
	number int64
	place  Place
	// unsure is true after a failed call that may have taken the slot.
	unsure bool
	// served is true once turn was sent, left once the client has left.
	served, left bool
}

type outcome struct {
	session *Session
	err     error
}

// Wait waits in the account's queue until a session can be opened. It calls tell with the place as
// soon as that is known, when it changes, and every TellEvery. If the context ends, the ticket
// leaves the queue.
//
// Errors: fault.Limited if the queue is full; fault.Unavailable if the instance has no lease at the
// start.
func (i *Instance) Wait(ctx context.Context, account string, limits Limits, tell func(Place)) (*Session, error) {
	l := i.held()
	if l == nil {
		return nil, errNoLease()
	}
	limits.Line = min(cmp.Or(limits.Line, LongestLine), LongestLine)
	w := &waiter{limits: limits, moved: make(chan struct{}, 1), turn: make(chan outcome, 1),
		ticket: Slot{ID: "session_" + i.config.NewID(), Account: account, Epoch: l.epoch}}
	q := i.enlist(w)
	defer i.strike(ctx, q, w)
	if err := i.join(ctx, l, w); err != nil {
		return nil, err
	}
	q.kick()
	ticker := time.NewTicker(TellEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case end := <-w.turn:
			return end.session, end.err
		case <-w.moved:
		case <-ticker.C:
		}
		if place := i.placeOf(w); place.Position > 0 {
			tell(place)
		}
	}
}

func (i *Instance) placeOf(w *waiter) Place {
	i.mu.Lock()
	defer i.mu.Unlock()
	return w.place
}

func (i *Instance) enlist(w *waiter) *queue {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := i.queues[w.ticket.Account]
	if q == nil {
		ctx, stop := context.WithCancel(context.Background())
		q = &queue{account: w.ticket.Account, waiters: map[string]*waiter{}, kicked: make(chan struct{}, 1),
			stop: stop, ended: make(chan struct{})}
		i.queues[q.account] = q
		go i.watch(ctx, q)
	}
	q.waiters[w.ticket.ID] = w
	return q
}

// strike ends a wait. A client that was not served leaves the queue, and the last one ends it.
func (i *Instance) strike(ctx context.Context, q *queue, w *waiter) {
	i.mu.Lock()
	w.left = true
	ticket, served, unsure := w.ticket, w.served, w.unsure
	delete(q.waiters, ticket.ID)
	last := len(q.waiters) == 0 && i.queues[q.account] == q
	if last {
		delete(i.queues, q.account)
	}
	i.mu.Unlock()
	if last {
		q.stop()
		<-q.ended
	}
	if served {
		select {
		case end := <-w.turn: // as the context ended
			if end.session != nil {
				end.session.Close(ctx)
			}
		default:
		}
		return
	}
	// If this fails, the next look finds a ticket without a waiter, or the ticket soon stops
	// counting.
	_ = i.call(context.WithoutCancel(ctx), "leave a line", storeTime, func(ctx context.Context) error {
		return i.config.Store.Leave(ctx, ticket)
	})
	if unsure {
		i.owe(debt{slot: ticket, until: i.config.Uptime() + settleTime})
	}
}

// join puts a waiter into the queue, at the end unless it already has a number. It continues when
// the context ends, so that no ticket is left behind.
//
// Errors: fault.Limited if the queue is full; fault.Unavailable if the lease is lost.
func (i *Instance) join(ctx context.Context, l *lease, w *waiter) error {
	i.mu.Lock()
	ticket, number := w.ticket, w.number
	i.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	number, err := i.config.Store.Join(ctx, ticket, number, w.limits.Line)
	if fault.Is(err, fault.Conflict) {
		i.lose(l)
		return errNoLease()
	}
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	w.number = number
	return nil
}

func (i *Instance) watch(ctx context.Context, q *queue) {
	defer close(q.ended)
	ticker := time.NewTicker(i.config.LookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.kicked:
		case <-ticker.C:
		}
		if l := i.held(); l != nil {
			i.look(ctx, q, l)
		}
	}
}

// look reads the queue once, for all waiters.
func (i *Instance) look(ctx context.Context, q *queue, l *lease) {
	var line Line
	err := i.call(ctx, "look at a line", storeTime, func(ctx context.Context) (err error) {
		line, err = i.config.Store.Look(ctx, q.account, l.epoch)
		return err
	})
	if err != nil {
		return
	}
	seen := i.place(q, l, line)
	for _, ticket := range seen.unknown {
		_ = i.call(ctx, "leave a line", storeTime, func(ctx context.Context) error {
			return i.config.Store.Leave(ctx, ticket)
		})
	}
	for _, w := range seen.missing {
		i.comeBack(ctx, q, l, w)
	}
	for _, w := range seen.next {
		if i.redeem(ctx, q, l, w) != nil {
			return // and so it is not yet the turn of those behind it
		}
	}
}

// sighting is the result of a look for the tickets of this instance.
type sighting struct {
	// next are the waiters whose turn it is, in order. missing are the ones no longer in the queue.
	// unknown are tickets in the queue without a waiter.
	next, missing []*waiter
	unknown       []Slot
}

// place updates the places of the waiters.
func (i *Instance) place(q *queue, l *lease, line Line) (seen sighting) {
	i.mu.Lock()
	defer i.mu.Unlock()
	found := map[*waiter]bool{}
	for n, ticket := range line.Tickets {
		if ticket.Epoch != l.epoch {
			continue
		}
		w := q.waiters[ticket.ID]
		if w == nil {
			seen.unknown = append(seen.unknown, ticket)
			continue
		}
		found[w] = true
		if place := (Place{n + 1, len(line.Tickets)}); place != w.place {
			w.place = place
			signal(w.moved)
		}
		if most := w.limits.Sessions; w.number > 0 && (most <= 0 || n < most-line.Taken) {
			seen.next = append(seen.next, w)
		}
	}
	for _, w := range q.waiters {
		if !found[w] && w.number > 0 {
			seen.missing = append(seen.missing, w)
		}
	}
	return seen
}

// comeBack puts a waiter back into the queue at its place, after the instance was silent for too
// long or got a new lease.
func (i *Instance) comeBack(ctx context.Context, q *queue, l *lease, w *waiter) {
	i.mu.Lock()
	if w.ticket.Epoch != l.epoch {
		// A slot taken under the old lease has ended with it.
		w.ticket.Epoch, w.unsure = l.epoch, false
	}
	unsure := w.unsure
	i.mu.Unlock()
	if unsure && !fault.Is(i.redeem(ctx, q, l, w), fault.NotFound) {
		return
	}
	err := i.join(ctx, l, w)
	switch {
	case fault.Is(err, fault.Limited):
		i.finish(ctx, q, w, outcome{err: err})
	case err != nil && ctx.Err() == nil && !fault.Is(err, fault.Unavailable):
		i.config.Logger.Warn("the store of sessions failed", "call", "join a line", "error", err)
	}
}

// redeem opens the session of a waiter whose turn it is.
//
// Errors: fault.Unavailable if the lease is lost.
func (i *Instance) redeem(ctx context.Context, q *queue, l *lease, w *waiter) error {
	i.mu.Lock()
	ticket, left := w.ticket, w.left
	i.mu.Unlock()
	if left {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	err := i.config.Store.Redeem(ctx, ticket, w.limits.Sessions)
	switch {
	case fault.Is(err, fault.Limited), fault.Is(err, fault.NotFound):
		return err
	case fault.Is(err, fault.Conflict):
		i.lose(l)
		return errNoLease()
	case err != nil:
		if ctx.Err() != context.Canceled {
			i.config.Logger.Warn("the store of sessions failed", "call", "redeem a ticket", "error", err)
		}
		i.mu.Lock()
		w.unsure, left = true, w.left
		i.mu.Unlock()
		if left {
			i.owe(debt{slot: ticket, until: i.config.Uptime() + settleTime})
		}
		return err
	}
	if !i.alive(l) {
		// The slot ends with its epoch: Run calls End next.
		return errNoLease()
	}
	i.mu.Lock()
	i.counted++
	i.mu.Unlock()
	i.finish(ctx, q, w, outcome{session: &Session{instance: i, lease: l, slot: ticket}})
	return nil
}

// finish ends a wait with the outcome. It closes the session if the client has left.
func (i *Instance) finish(ctx context.Context, q *queue, w *waiter, end outcome) {
	i.mu.Lock()
	left := w.left
	if !left {
		w.served = true
		delete(q.waiters, w.ticket.ID)
		w.turn <- end
	}
	i.mu.Unlock()
	if left && end.session != nil {
		end.session.Close(ctx)
	}
}

// kick makes the instance look at the account's queue at once, if its own clients wait in it.
func (i *Instance) kick(account string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if q := i.queues[account]; q != nil {
		q.kick()
	}
}
