package upstream

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cutroom/shared/domain/catalog"
)

// queueTick is the interval at which a queue checks for a free upstream. It also checks when a call
// ends. An upstream may have recovered or be new.
const queueTick = 100 * time.Millisecond

// queue holds the calls of a model that wait for an upstream. Accounts take turns, so no account
// waits behind all calls of another. The queue outlives the catalog that created it.
type queue struct {
	// refresh makes the queue use a new catalog, which waiting calls do not load themselves.
	refresh func()
	// draining is closed when waiting must end.
	draining <-chan struct{}
	// places is the maximum number of waiting calls. It is 0 for a model without a queue.
	places atomic.Int64
	// waiting is the number of waiting calls.
	waiting atomic.Int64

	mu   sync.Mutex
	wait time.Duration
	pool *Pool
	// accounts holds each account's waiting calls in order. turns lists the accounts with waiting
	// calls, the next one first.
	accounts map[string][]*waiter
	turns    []string
	tick     *time.Timer
}

type waiter struct {
	call  Call
	given chan grant
}

type grant struct {
	slot Slot
	why  *Unavailable
}

// set applies the queue settings of a catalog.
func (q *queue) set(pool *Pool, settings catalog.Queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pool, q.wait = pool, settings.Wait
	q.places.Store(int64(settings.Calls))
}

// take takes an upstream. If all of them are full and the queue has a free place, it waits for one.
func (q *queue) take(ctx context.Context, call *Call) (Slot, *Unavailable) {
	// Count the call now, so that upstreams that become free are handed out.
	q.waiting.Add(1)
	q.mu.Lock()
	why := &Unavailable{Full: true, Wait: time.Second}
	if len(q.turns) == 0 {
		var l Slot
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
		return Slot{}, why
	}
	w := q.enter(*call)
	q.mu.Unlock()
	started := time.Now()
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
	g := <-w.given // it was granted at the same moment
	if g.why == nil && ctx.Err() != nil {
		g.slot.Release(Result{Verdict: Unknown}, q.pool.now())
		return Slot{}, why
	}
	return g.slot, g.why
}

// pause waits in one of the queue's places, for at most as long as the call may wait. It reports
// whether time remains for a retry.
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

// place reports whether the queue has a place for a call of the account, which is already counted.
// If all places are taken, an account with fewer calls takes the last place of the one with the
// most.
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

// enter appends a call to its account's calls.
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

// leave removes a call that stops waiting. It returns false if the call already received a grant.
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

// ticked hands out free upstreams. It reschedules itself while calls wait.
func (q *queue) ticked() {
	q.refresh()
	q.handOut()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tick = nil; len(q.turns) > 0 {
		q.tick = time.AfterFunc(queueTick, q.ticked)
	}
}

// handOut assigns free upstreams to waiting calls, one account after another.
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
		if why != nil && why.Full { // a call of another account may start
			passed++
			q.turns = append(q.turns[1:], account)
			continue
		}
		passed = 0
		q.remove(account, w)
		if len(q.accounts[account]) > 0 { // the account moves to the end
			q.turns = append(q.turns[1:], account)
		}
		w.given <- grant{l, why}
	}
}

type QueueState struct {
	Model string
	// Waiting is the number of waiting calls; Places is the maximum.
	Waiting, Places int
}
