package upstream

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cutroom/shared/domain/catalog"
)

// queueTick is the interval at which a queue checks for a free upstream.
const queueTick = 100 * time.Millisecond

// After a 429, an account's waiting calls start only when another call ends or busyTime has passed.
const busyTime = 2 * queueTick

// If a row has no queue, up to briefCalls calls wait for briefWait, so that each account gets its turn. A call that can
// fall back to another row waits just long enough to take the slot of a batch call, if there is one.
const (
	briefCalls   = 64
	briefWait    = 5 * time.Second
	fallbackWait = cutEvery + 2*queueTick
)

// queue holds a model's calls that are waiting for an upstream. Accounts take turns. The queue
// outlives the catalog that created it.
type queue struct {
	// refresh makes the queue use the current catalog, because waiting calls do not load it themselves.
	refresh func()
	// draining is closed when all waits must end.
	draining <-chan struct{}
	// places is the maximum number of waiting calls. It is 0 if the row has no queue.
	places  atomic.Int64
	waiting atomic.Int64

	mu   sync.Mutex
	wait time.Duration
	pool *Pool
	// accounts contains each account's waiting calls. turns lists the accounts in the order of their turns.
	accounts map[string][]*waiter
	turns    []string
	tick     *time.Timer
	// busy is when a call last had to wait because an upstream was busy.
	busy time.Time
}

type waiter struct {
	call  Call
	given chan grant
	since time.Time
	// after is the earliest time at which a rejected call may be retried.
	after time.Time
}

// usesAny reports whether a call may use any server, because none has rejected it.
func (w *waiter) usesAny() bool { return len(w.call.Tried) == 0 }

type grant struct {
	slot Slot
	why  *Unavailable
}

func (q *queue) set(pool *Pool, row *catalog.Inference) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pool, q.wait = pool, row.Queue.Wait
	if row.Queue.Calls == 0 {
		q.wait = briefWait
	}
	q.places.Store(int64(row.Queue.Calls))
}

func (q *queue) take(ctx context.Context, call *Call) (Slot, *Unavailable) {
	// Count the call first, so that an upstream that becomes free from now on is offered to waiting calls.
	q.waiting.Add(1)
	q.mu.Lock()
	why := &Unavailable{Full: true, Wait: time.Second}
	started := time.Now()
	if call.busyFor == 0 && q.isFirst(call.Account, started) {
		var l Slot
		if l, why = q.pool.try(*call); why == nil || !why.Full {
			q.waiting.Add(-1)
			q.mu.Unlock()
			return l, why
		}
	}
	left := q.wait
	if q.places.Load() == 0 && call.Elsewhere {
		left = 0
		if q.pool.hasBatches() {
			left = fallbackWait
		}
	}
	left -= call.Waited
	if left <= call.busyFor || !q.place(call.Account) {
		q.waiting.Add(-1)
		q.mu.Unlock()
		return Slot{}, why
	}
	w := q.enter(*call, started)
	call.busyFor = 0
	q.mu.Unlock()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case g := <-w.given:
		call.Waited += time.Since(started)
		return g.slot, g.why
	case <-timer.C:
	case <-q.draining:
		why = &Unavailable{Stopping: true, Wait: time.Second}
	case <-ctx.Done():
	}
	call.Waited += time.Since(started)
	if q.leave(w) {
		return Slot{}, why
	}
	g := <-w.given // a grant arrived at the same moment
	if g.why == nil && ctx.Err() != nil {
		g.slot.Release(Result{Verdict: Unknown}, q.pool.now())
		return Slot{}, why
	}
	return g.slot, g.why
}

// isFirst reports whether no waiting call has a right to a slot before an account's new call. An account that has its
// share of the slots does not delay the calls of others.
func (q *queue) isFirst(account string, now time.Time) bool {
	ready := func(a string) bool {
		return slices.ContainsFunc(q.accounts[a], func(w *waiter) bool { return w.usesAny() && !now.Before(w.after) })
	}
	if ready(account) {
		return false
	}
	waits := func(a string) bool { return ready(a) && q.pool.hasSlotFor(now, a) }
	if !slices.ContainsFunc(q.turns, waits) {
		return true
	}
	if now.Sub(q.busy) < q.wait {
		return false
	}
	q.start(now, false)
	return true
}

// accountsWaiting returns the accounts with calls that wait for a slot. Calls that a server has rejected do not count,
// because only these may be too large for it, and because the servers that are left to them may be full.
func (q *queue) accountsWaiting() (accounts []string) {
	if q.waiting.Load() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, account := range q.turns {
		if slices.ContainsFunc(q.accounts[account], func(w *waiter) bool { return w.after.IsZero() && w.usesAny() }) {
			accounts = append(accounts, account)
		}
	}
	return accounts
}

// place reports whether the queue has a place for an account's call, which must have been counted. If the queue
// is full, the account with the most calls loses its last place to an account with fewer.
func (q *queue) place(account string) bool {
	if q.waiting.Load() <= cmp.Or(q.places.Load(), briefCalls) {
		return true
	}
	var most string
	for _, other := range q.turns {
		if len(q.accounts[other]) > len(q.accounts[most]) {
			most = other
		}
	}
	if len(q.accounts[most]) <= len(q.accounts[account])+1 {
		return false
	}
	last := q.accounts[most][len(q.accounts[most])-1]
	q.remove(most, last)
	last.given <- grant{why: &Unavailable{Full: true, Wait: time.Second}}
	return true
}

// enter adds a call to its account's queue: at the front if upstreams were busy, otherwise at the back.
func (q *queue) enter(call Call, now time.Time) *waiter {
	w := &waiter{call: call, given: make(chan grant, 1), since: now}
	if q.accounts == nil {
		q.accounts = map[string][]*waiter{}
	}
	if len(q.accounts[call.Account]) == 0 {
		q.turns = append(q.turns, call.Account)
	}
	at := len(q.accounts[call.Account])
	if call.busyFor > 0 {
		at, q.busy, w.after = 0, now, now.Add(call.busyFor)
	}
	q.accounts[call.Account] = slices.Insert(q.accounts[call.Account], at, w)
	if q.tick == nil {
		q.tick = time.AfterFunc(queueTick, q.ticked)
	}
	return w
}

// leave removes a call that stops waiting. It returns false if the call has already received a grant.
func (q *queue) leave(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.remove(w.call.Account, w)
}

func (q *queue) remove(account string, w *waiter) bool {
	calls := q.accounts[account]
	at := slices.Index(calls, w)
	if at < 0 {
		return false
	}
	q.waiting.Add(-1)
	if calls = slices.Delete(calls, at, at+1); len(calls) > 0 {
		q.accounts[account] = calls
		return true
	}
	delete(q.accounts, account)
	q.turns = slices.DeleteFunc(q.turns, func(other string) bool { return other == account })
	return true
}

// ticked assigns free upstreams, and reschedules itself while calls are waiting.
func (q *queue) ticked() {
	q.refresh()
	q.handOut(false)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tick = nil; len(q.turns) > 0 {
		q.tick = time.AfterFunc(queueTick, q.ticked)
	}
}

// try starts the first of an account's calls that finds a slot. It returns nil if no call does.
func (q *queue) try(account string, now time.Time) (started *waiter, l Slot, why *Unavailable) {
	for _, w := range q.accounts[account] {
		if now.Before(w.after) {
			continue
		}
		w.call.urgent = q.places.Load() == 0 && w.call.Elsewhere && now.Sub(w.since) >= cutEvery
		if l, why = q.pool.try(w.call); why == nil || !why.Full {
			return w, l, why
		}
		if w.usesAny() {
			break // the next calls find no slot either
		}
	}
	return nil, Slot{}, nil
}

// handOut assigns free upstreams to waiting calls. freed means that an accepted call has ended.
func (q *queue) handOut(freed bool) {
	if q.waiting.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.start(time.Now(), freed)
}

// start starts waiting calls. It sorts accounts by their running calls, then by the time that they have used, and then
// by their turns.
// After a 429, it starts only one call, so that no account gets ahead by retrying more often.
func (q *queue) start(now time.Time, freed bool) {
	since := now.Sub(q.busy)
	uses, waiting := q.pool.uses(now, q.turns), slices.Clone(q.turns)
	fewer := func(a, b string) int { return uses[a].less(uses[b]) }
	slices.SortStableFunc(waiting, fewer)
	for len(waiting) > 0 {
		account := waiting[0]
		waiting = waiting[1:]
		if !freed && since < busyTime && !q.accounts[account][0].after.IsZero() {
			continue
		}
		w, l, why := q.try(account, now)
		if w == nil {
			continue // another account's call may start
		}
		if q.remove(account, w); len(q.accounts[account]) > 0 { // the account's next turn comes last
			q.turns = append(slices.DeleteFunc(q.turns, func(other string) bool { return other == account }), account)
			more := uses[account]
			more.now++
			uses[account] = more
			waiting = append(waiting, account)
			slices.SortStableFunc(waiting, fewer)
		}
		w.given <- grant{l, why}
		if since < q.wait { // the 429 is recent, so calls may still be waiting because of it
			return
		}
	}
}

type QueueState struct {
	Model           string
	Waiting, Places int
}
