package session

import (
	"cmp"
	"context"
	"slices"
	"time"

	"cutroom/shared/domain/fault"
)

// Place is a client's place in a queue of Size clients. Position 1 is next.
type Place struct {
	Position, Size int
}

type Limits struct {
	Sessions int // open sessions; 0 means no limit
	Queue    int // waiting clients; 0 means LongestQueue
	// Client identifies the waiting client. If it waits again within ReturnTime, it keeps its place. Empty means that it
	// does not.
	Client string
}

// queue holds an account's clients that wait at this instance. One goroutine renews their tickets
// until the last client has left. The instance's mutex guards the two lists.
type queue struct {
	account, holder string
	waiters         []*waiter // in order of arrival
	// left lists clients that have left while their tickets may still be in the store.
	left []*waiter
	// kicked has an element if the goroutine must read the queue immediately.
	kicked chan struct{}
}

func (q *queue) kick() { signal(q.kicked) }

// signal sends a value without blocking to a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

type waiter struct {
	limits Limits
	// moved has an element after place has changed. turn has an element after the wait has ended.
	moved chan struct{}
	turn  chan outcome
	// gone is closed once the ticket is no longer in the store.
	gone   chan struct{}
	ticket Ticket // used only by the queue's goroutine
	place  Place  // guarded by the instance's mutex
}

type outcome struct {
	session *Session
	err     error
}

// Wait waits in the account's queue until a session can be opened. It calls notify with the initial place, whenever
// the place changes, and at intervals of NotifyEvery.
//
// Errors: fault.Limited if the queue is full; fault.Unavailable if the instance has no lease when the wait starts;
// the context's error if the context ends first; errors of the store.
func (i *Instance) Wait(ctx context.Context, account string, limits Limits, notify func(Place)) (*Session, error) {
	if i.held() == nil {
		return nil, errNoLease()
	}
	w := &waiter{
		limits: limits, moved: make(chan struct{}, 1), turn: make(chan outcome, 1), gone: make(chan struct{}),
		ticket: Ticket{
			ID: i.newSessionID(), Longest: min(cmp.Or(limits.Queue, LongestQueue), LongestQueue), Client: limits.Client,
		},
	}
	q := i.enlist(account, w)
	defer i.leave(ctx, q, w)
	ticker := time.NewTicker(NotifyEvery)
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
			notify(place)
		}
	}
}

func (i *Instance) placeOf(w *waiter) Place {
	i.mu.Lock()
	defer i.mu.Unlock()
	return w.place
}

func (i *Instance) enlist(account string, w *waiter) *queue {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := i.queues[account]
	if q == nil {
		q = &queue{account: account, holder: i.config.NewID(), kicked: make(chan struct{}, 1)}
		i.queues[account] = q
		go i.watch(q)
	}
	q.waiters = append(q.waiters, w)
	q.kick()
	return q
}

// finish ends a wait. If the client has already left, finish closes the session.
func (i *Instance) finish(q *queue, w *waiter, end outcome) {
	i.mu.Lock()
	at := slices.Index(q.waiters, w)
	if at >= 0 {
		q.waiters = slices.Delete(q.waiters, at, at+1)
		w.turn <- end
	}
	i.mu.Unlock()
	if at < 0 && end.session != nil {
		end.session.Close(context.Background())
	}
}

// leave removes the waiter from the queue, and returns once the store has removed its ticket.
func (i *Instance) leave(ctx context.Context, q *queue, w *waiter) {
	i.mu.Lock()
	at := slices.Index(q.waiters, w)
	if at >= 0 {
		q.waiters = slices.Delete(q.waiters, at, at+1)
		q.left = append(q.left, w)
		q.kick()
	}
	i.mu.Unlock()
	if at >= 0 {
		<-w.gone
	}
	select {
	case end := <-w.turn: // the turn came just as the context ended
		if end.session != nil {
			end.session.Close(ctx)
		}
	default:
	}
}

func (i *Instance) kick(account string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if q := i.queues[account]; q != nil {
		q.kick()
	}
}

func (i *Instance) watch(q *queue) {
	ticker := time.NewTicker(PollEvery)
	defer ticker.Stop()
	for i.poll(q) {
		select {
		case <-q.kicked:
		case <-ticker.C:
		}
	}
}

// poll renews a queue's tickets and opens sessions for the clients whose turn it is. It returns
// false if no client is waiting any more.
func (i *Instance) poll(q *queue) bool {
	i.mu.Lock()
	waiters, left := slices.Clone(q.waiters), q.left
	q.left = nil
	i.mu.Unlock()
	l := i.held()
	var next []*waiter
	if l != nil {
		next = i.renew(q, waiters, left)
	}
	for _, w := range left {
		// If the renewal failed, the next renewal removes the ticket, or the ticket expires.
		close(w.gone)
	}
	for _, w := range next {
		if i.redeem(q, l, w) != nil {
			break // later waiters must wait too
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(q.waiters)+len(q.left) > 0 {
		return true
	}
	delete(i.queues, q.account)
	return false
}

// renew renews the tickets and returns the waiters whose turn it is. If the queue has no space for
// a waiter, it ends the wait.
func (i *Instance) renew(q *queue, waiters, left []*waiter) (next []*waiter) {
	var own []Ticket
	for _, w := range left {
		if w.ticket.Left = true; w.ticket.Client != "" {
			own = append(own, w.ticket)
		}
	}
	for _, w := range waiters {
		own = append(own, w.ticket)
	}
	var tickets []Ticket
	var taken int
	err := i.call(context.Background(), "renew tickets", storeTime, func(ctx context.Context) (err error) {
		tickets, taken, err = i.config.Store.RenewTickets(ctx, q.account, q.holder, own)
		return err
	})
	places := map[string]int{}
	for at, ticket := range tickets {
		places[ticket.ID] = at
	}
	for _, w := range waiters {
		at, found := places[w.ticket.ID]
		switch {
		case err != nil && w.ticket.Number == 0:
			i.finish(q, w, outcome{err: err})
		case err != nil:
		case !found:
			i.finish(q, w, outcome{err: ErrNoSlot})
		default:
			w.ticket.Number = tickets[at].Number
			i.moves(w, Place{at + 1, len(tickets)})
			if limit := w.limits.Sessions; limit <= 0 || at < limit-taken {
				next = append(next, w)
			}
		}
	}
	return next
}

func (i *Instance) moves(w *waiter, place Place) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if w.place != place {
		w.place = place
		signal(w.moved)
	}
}

func (i *Instance) redeem(q *queue, l *lease, w *waiter) error {
	opened, err := i.take(context.Background(), l, Slot{ID: w.ticket.ID, Account: q.account, Epoch: l.epoch}, w.limits.Sessions)
	switch {
	case err == nil:
		i.finish(q, w, outcome{session: opened})
		q.kick()
	case !fault.Is(err, fault.Limited):
		// The slot may have been taken despite the error. It will be freed later, so the next
		// attempt needs another id.
		w.ticket.ID = i.newSessionID()
		i.config.Logger.Warn("the session store failed", "call", "open the session of a waiting client", "error", err)
	}
	return err
}
