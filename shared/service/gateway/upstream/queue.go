package upstream

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cutroom/shared/domain/catalog"
)

// queueTick is how often a queue looks whether an upstream is free, besides
// whenever a call ends: one may have come back, or come new.
const queueTick = 100 * time.Millisecond

// queue holds the calls of a model that wait for an upstream, until one is free.
// Accounts take turns, so that none waits behind all calls of another. It outlives
// the catalog that made it.
type queue struct {
	// refresh has the queue told of a new catalog, if there is one: those who wait
	// make no other call that would.
	refresh func()
	// draining is closed when nobody may wait any more.
	draining <-chan struct{}
	// places bounds how many calls wait, 0 for a model without a queue.
	places atomic.Int64
	// waiting is how many do.
	waiting atomic.Int64

	mu   sync.Mutex
	wait time.Duration
	// pool is the model's current one.
	pool *Pool
	// accounts are the calls of each account in their order, and turns the accounts
	// that have some, the next one first.
	accounts map[string][]*waiter
	turns    []string
	tick     *time.Timer
}

// waiter is a call that waits.
type waiter struct {
	call  Call
	given chan grant
}

// grant is what a call gets for its waiting.
type grant struct {
	lease Lease
	why   *Unavailable
}

// set takes over what a catalog says of the queue.
func (q *queue) set(pool *Pool, settings catalog.Queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pool, q.wait = pool, settings.Wait
	q.places.Store(int64(settings.Calls))
}

// take takes an upstream, and waits for one if all are full and there is a place.
func (q *queue) take(ctx context.Context, call *Call) (Lease, *Unavailable) {
	// It counts from now on, so that what becomes free meanwhile is handed out.
	q.waiting.Add(1)
	q.mu.Lock()
	why := &Unavailable{Full: true, Wait: time.Second}
	if len(q.turns) == 0 {
		var l Lease
		if l, why = q.pool.try(*call); why == nil || !why.Full {
			q.waiting.Add(-1)
			q.mu.Unlock()
			return l, why
		}
	}
	left := q.wait - call.Waited
	if left <= 0 || !q.place(call.Account) {
		q.waiting.Add(-1)
		q.mu.Unlock()
		return Lease{}, why
	}
	w := q.enter(*call)
	q.mu.Unlock()
	begun := time.Now()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case g := <-w.given:
		call.Waited += time.Since(begun)
		return g.lease, g.why
	case <-timer.C:
	case <-q.draining:
		why = &Unavailable{Stopping: true, Wait: time.Second}
	case <-ctx.Done():
	}
	call.Waited += time.Since(begun)
	if q.leave(w) {
		return Lease{}, why
	}
	g := <-w.given // it came at the same moment
	if g.why == nil && ctx.Err() != nil {
		g.lease.Release(Result{Verdict: Unknown}, q.pool.now())
		return Lease{}, why
	}
	return g.lease, g.why
}

// pause waits for a while in one of the queue's places, but no longer than the call
// may wait. It reports whether there is time left to try again.
func (q *queue) pause(ctx context.Context, call *Call, d time.Duration) bool {
	q.waiting.Add(1)
	defer q.waiting.Add(-1)
	q.mu.Lock()
	if d >= q.wait-call.Waited || !q.place(call.Account) {
		q.mu.Unlock()
		return false
	}
	q.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		call.Waited += d
		return true
	case <-q.draining:
		return false
	case <-ctx.Done():
		return false
	}
}

// place reports whether there is a place for a call of the account, which is
// counted already. If all are taken, the account that has most of them gives up its
// last one for an account that has fewer.
func (q *queue) place(account string) bool {
	if q.waiting.Load() <= q.places.Load() {
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

// enter adds a call to the end of its account's.
func (q *queue) enter(call Call) *waiter {
	w := &waiter{call: call, given: make(chan grant, 1)}
	if q.accounts == nil {
		q.accounts = map[string][]*waiter{}
	}
	if len(q.accounts[call.Account]) == 0 {
		q.turns = append(q.turns, call.Account)
	}
	q.accounts[call.Account] = append(q.accounts[call.Account], w)
	if q.tick == nil {
		q.tick = time.AfterFunc(queueTick, q.ticked)
	}
	return w
}

// leave takes a call out that waits no longer; false says that it was given
// something already.
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

// ticked hands out what is free, and comes again while calls wait.
func (q *queue) ticked() {
	q.refresh()
	q.handOut()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tick = nil; len(q.turns) > 0 {
		q.tick = time.AfterFunc(queueTick, q.ticked)
	}
}

// handOut gives upstreams that are free to calls that wait, one account after
// another.
func (q *queue) handOut() {
	if q.waiting.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for passed := 0; passed < len(q.turns); {
		account := q.turns[0]
		w := q.accounts[account][0]
		l, why := q.pool.try(w.call)
		if why != nil && why.Full {
			if len(w.call.Tried) == 0 {
				return // nor is there one for anybody else
			}
			passed++
			q.turns = append(q.turns[1:], account)
			continue
		}
		passed = 0
		q.remove(account, w)
		if len(q.accounts[account]) > 0 { // it goes to the end
			q.turns = append(q.turns[1:], account)
		}
		w.given <- grant{l, why}
	}
}

// QueueState is how full the queue of a model is.
type QueueState struct {
	Model string
	// Waiting is how many calls wait, Places how many may.
	Waiting, Places int
}
