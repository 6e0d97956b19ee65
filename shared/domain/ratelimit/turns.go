package ratelimit

import (
	"context"
	"slices"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// listsAtOnce is the number of turns, which limits the list responses in memory. listsKept is the number of turns
	// reserved for accounts without a turn.
	listsAtOnce, listsKept = 32, 16
	listWait               = 5 * time.Second // the longest wait for a turn
)

// NewListTurns limits concurrent list responses, because each takes megabytes of memory until its caller has read it.
func NewListTurns() *Turns { return NewTurns(listsAtOnce, listsKept) }

// Respond builds and writes a list response when it is the account's turn.
//
// Errors: fault.Limited if the turn does not come within five seconds; errors from write.
func (t *Turns) Respond(ctx context.Context, account string, write func() error) error {
	waiting, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	if !t.Take(waiting, account) {
		over := fault.New(fault.Limited, "Too many list responses have not been read yet. Read them, then try again.")
		over.RetryAfter = listWait
		return over
	}
	defer t.Release(account)
	return write()
}

// NewSlowReads limits reads that take long. See Slowly.
func NewSlowReads() *Turns { return NewTurns(4, 1).AtMost(1) }

const longRead, longestPause = 5 * time.Millisecond, 15 * time.Second

// Long makes Slowly pause only after reads of at least this length, and only while other accounts have turns, pause or
// wait. Call it before the first turn.
func (t *Turns) Long(length time.Duration) *Turns {
	t.long = length
	return t
}

// Slowly runs a read that takes long. If accounts have one turn at most, an account reads 1/parts of the time at most,
// even if its client disconnects. Between its reads, others can use its turn.
func (t *Turns) Slowly(ctx context.Context, account string, parts int, read func() error) error {
	if !t.Take(ctx, account) {
		return ctx.Err()
	}
	began := time.Now()
	defer func() {
		took := time.Since(began)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.free++
		if took < max(t.long, longRead) || t.long > 0 && len(t.held) == 1 && !t.othersWait(account) {
			t.leave(account)
			return
		}
		time.AfterFunc(min(took*time.Duration(parts-1), longestPause), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.leave(account)
		})
		t.handOut()
	}()
	return read()
}

// Turns limits concurrent calls and divides them fairly among accounts. The next turn goes to the
// account that has the fewest turns. Among equals, it goes to the account that was served longest
// ago. Some turns are reserved for accounts without a turn.
type Turns struct {
	mu   sync.Mutex
	free int
	// kept is the number of turns reserved for accounts without a turn. most is the maximum number of an account's turns.
	kept, most int
	// lent permits an account to take the reserved turns too while no other account takes turns.
	lent    bool
	long    time.Duration
	held    map[string]int
	waiting []*turn
	served  map[string]served
	count   uint64
}

// served is when an account last got a turn. count orders turns that were given at the same time.
type served struct {
	count uint64
	at    time.Time
}

// sharedFor is how long turns are shared with an account after it last got one.
const sharedFor = 10 * time.Second

type turn struct {
	account string
	given   chan struct{}
}

// NewTurns permits the given number of concurrent calls, of which `kept` are reserved for accounts without a turn.
func NewTurns(calls, kept int) *Turns {
	return &Turns{free: calls, kept: kept, most: calls, held: map[string]int{}, served: map[string]served{}}
}

// AtMost limits the turns of each account. Call it before the first turn.
func (t *Turns) AtMost(turns int) *Turns {
	t.most = turns
	return t
}

// Lent permits an account to take the reserved turns too if no other account got a turn in the last ten seconds. It is
// for short turns, because the next account waits for the end of one. Call it before the first turn.
func (t *Turns) Lent() *Turns {
	t.lent = true
	return t
}

// Take waits for a turn, which Release ends. It returns false if the context ends first.
func (t *Turns) Take(ctx context.Context, account string) bool {
	t.mu.Lock()
	mine := &turn{account, make(chan struct{})}
	t.waiting = append(t.waiting, mine)
	t.handOut()
	t.mu.Unlock()
	select {
	case <-mine.given:
		return true
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := slices.Index(t.waiting, mine); at >= 0 {
		t.waiting = slices.Delete(t.waiting, at, at+1)
		return false
	}
	t.end(account) // the turn was given just as the context ended
	return false
}

func (t *Turns) Release(account string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(account)
}

func (t *Turns) end(account string) {
	t.free++
	t.leave(account)
}

func (t *Turns) leave(account string) {
	if t.held[account]--; t.held[account] == 0 {
		delete(t.held, account)
	}
	t.handOut()
}

func (t *Turns) OthersWait(account string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.othersWait(account)
}

func (t *Turns) othersWait(account string) bool {
	return slices.ContainsFunc(t.waiting, func(one *turn) bool { return one.account != account })
}

// The lock must be held.
func (t *Turns) handOut() {
	for t.free > 0 && len(t.waiting) > 0 {
		next := 0
		for i, other := range t.waiting {
			if t.before(other.account, t.waiting[next].account) {
				next = i
			}
		}
		// The chosen account has the fewest turns.
		chosen := t.waiting[next]
		if n := t.held[chosen.account]; n >= t.most || n > 0 && t.free <= t.reserved(chosen.account) {
			break
		}
		t.waiting = slices.Delete(t.waiting, next, next+1)
		t.free--
		t.held[chosen.account]++
		t.count++
		t.served[chosen.account] = served{t.count, time.Now()}
		close(chosen.given)
	}
	if len(t.waiting) == 0 && len(t.held) == 0 {
		clear(t.served)
	}
}

func (t *Turns) before(account, other string) bool {
	if t.held[account] != t.held[other] {
		return t.held[account] < t.held[other]
	}
	return t.served[account].count < t.served[other].count
}

// reserved returns how many turns an account that has one must leave free. The lock must be held.
func (t *Turns) reserved(account string) int {
	if t.lent && !t.isShared(account) {
		return 0
	}
	return t.kept
}

// isShared reports whether another account recently got a turn. The lock must be held.
func (t *Turns) isShared(account string) bool {
	for other, last := range t.served {
		if other != account && time.Since(last.at) < sharedFor {
			return true
		}
	}
	return false
}
