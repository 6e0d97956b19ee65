package upstream

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/platform/clock"
	"cutroom/shared/testkit/await"
)

// accounts simulates accounts that call one server with 16 slots.
type accounts struct {
	t      *testing.T
	now    time.Time
	server *upstream
	ends   map[time.Time][]Slot
}

func newAccounts(t *testing.T) *accounts {
	server := &upstream{
		identity: identity{queue: &queue{}}, accounts: map[string]*calls{}, batches: map[string]*batchCalls{}, limit: 16,
	}
	return &accounts{t, time.Unix(1e9, 0), server, map[time.Time][]Slot{}}
}

// call starts at most this many calls of a length, and returns how many could start.
func (a *accounts) call(account string, number int, length time.Duration) int {
	for i := range number {
		slot, ok := a.server.take(a.now, &Call{Account: account})
		if !ok {
			return i
		}
		end := a.now.Add(length)
		a.ends[end] = append(a.ends[end], slot)
	}
	return number
}

func (a *accounts) running(account string) int { return a.server.uses(a.now, account).now }

// step is an amount of time that divides all lengths of calls.
const step = 100 * time.Millisecond

func (a *accounts) step() {
	a.now = a.now.Add(step)
	for _, slot := range a.ends[a.now] {
		slot.Release(Result{}, a.now)
	}
	delete(a.ends, a.now)
}

// caller has connections that call one server again and again, a pause after each response and a second after each
// refusal, as Retry-After says. leaves is how long a call waits at most, if it is not 0. An impatient caller does not
// wait after a refusal.
type caller struct {
	account     string
	connections int
	length      time.Duration
	pause       time.Duration
	leaves      time.Duration
	impatient   bool
	later       time.Duration
}

// crowd runs all callers at the same time, for two minutes. It returns how many calls each account started in the second
// minute, and the mean number of used slots.
func crowd(t *testing.T, limit int, queue catalog.Queue, callers ...caller) (started map[string]int, used float64) {
	t.Helper()
	started = map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		server := newAccounts(t).server
		server.limit = limit
		pool := &Pool{fixed: []member{{upstream: server, weight: 1}}, queue: server.queue, random: rand.Float64, now: time.Now}
		pool.queue.set(pool, &catalog.Inference{Queue: queue})
		pool.queue.refresh = func() {}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		counted := time.Now().Add(time.Minute)
		var mu sync.Mutex
		var all sync.WaitGroup
		call := func(c caller) (ok bool) {
			patience, cancel := ctx, context.CancelFunc(func() {})
			if c.leaves > 0 {
				patience, cancel = context.WithTimeout(ctx, c.leaves)
			}
			defer cancel()
			slot, why := pool.Take(patience, &Call{Account: c.account})
			if why != nil {
				return false
			}
			begun := time.Now()
			clock.Wait(ctx, c.length)
			slot.Release(Result{}, time.Now())
			mu.Lock()
			defer mu.Unlock()
			if !begun.Before(counted) {
				started[c.account]++
				used += time.Since(begun).Minutes()
			}
			return true
		}
		for _, c := range callers {
			for range c.connections {
				all.Go(func() {
					clock.Wait(ctx, c.later)
					for ctx.Err() == nil {
						rest := c.pause
						if !call(c) && !c.impatient {
							rest = time.Second
						}
						clock.Wait(ctx, max(rest, time.Millisecond))
					}
				})
			}
		}
		all.Wait()
	})
	return started, used
}

// alike returns accounts whose calls are alike.
func alike(accounts int, c caller) (all []caller) {
	for i := range accounts {
		c.account = string(rune('a' + i))
		all = append(all, c)
	}
	return all
}

// However many accounts call a server, its slots are used, and each account gets about as much as the others.
func TestSlotsAreUsedAndShared(t *testing.T) {
	for _, c := range []struct {
		limit, accounts, connections int
		length, pause                time.Duration
	}{
		{4, 4, 1, 20 * time.Millisecond, 0}, {4, 5, 1, 20 * time.Millisecond, 0}, {4, 8, 1, 20 * time.Millisecond, 0},
		{4, 12, 2, 50 * time.Millisecond, 150 * time.Millisecond}, {4, 8, 2, 100 * time.Millisecond, 100 * time.Millisecond},
		{4, 5, 1, time.Second, 0}, {4, 8, 1, 200 * time.Millisecond, 0}, {4, 5, 1, 5 * time.Second, 0},
		{8, 12, 1, 20 * time.Millisecond, 0}, {16, 24, 1, 20 * time.Millisecond, 0}, {1, 3, 1, time.Second, 0}, {2, 3, 2, time.Second, 0},
	} {
		started, used := crowd(t, c.limit, catalog.Queue{}, alike(c.accounts, caller{connections: c.connections, length: c.length, pause: c.pause})...)
		least, sum := math.MaxInt, 0
		for i := range c.accounts {
			n := started[string(rune('a'+i))]
			least, sum = min(least, n), sum+n
		}
		if used < float64(c.limit)*2/3 || least < sum/c.accounts/2 {
			t.Errorf("%+v: %.1f slots are used, and one account has %d of %d calls", c, used, least, sum)
		}
	}
}

// Calls that leave before they get a slot keep none free.
func TestAbandonedCallsReserveNothing(t *testing.T) {
	for _, queue := range []catalog.Queue{{}, {Calls: 100, Wait: 10 * time.Second}} {
		victims := alike(6, caller{connections: 2, length: 200 * time.Millisecond})
		var pokes []caller
		for _, c := range alike(4, caller{connections: 1, length: 200 * time.Millisecond, pause: 2100 * time.Millisecond}) {
			c.account, c.leaves = "poke "+c.account, 20*time.Millisecond
			pokes = append(pokes, c)
		}
		_, alone := crowd(t, 4, queue, victims...)
		if _, beside := crowd(t, 4, queue, append(pokes, victims...)...); beside < 0.8*alone {
			t.Errorf("queue %+v: %.1f slots are used beside abandoned calls, %.1f without them", queue, beside, alone)
		}
	}
}

// An account that keeps all slots busy must give up its share to one that comes later.
func TestLaterAccountGetsItsShare(t *testing.T) {
	for _, limit := range []int{1, 2, 4, 8, 16, 64} {
		for _, length := range []time.Duration{300 * time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second} {
			for _, waits := range []bool{true, false} {
				share := max(1, (limit-1)/2)
				started, _ := crowd(t, limit, catalog.Queue{},
					caller{account: "first", connections: limit + 1, length: length, impatient: true},
					caller{account: "later", connections: share, length: time.Second, later: 20 * time.Second, impatient: !waits})
				want := float64(share) * 60 / 2
				if limit < leftFree {
					want = 60 / (1 + length.Seconds()) / 2
				}
				if got := started["later"]; float64(got) < want {
					t.Errorf("%d slots, calls of %v: the later account has %d calls, want %.0f", limit, length, got, want)
				}
			}
		}
	}
}

// If as many accounts are busy as a server has slots, an account with short calls gets the next free slot.
func TestShortCallsStartBesideManyBusyAccounts(t *testing.T) {
	for _, limit := range []int{4, 8, 16} {
		busy := alike(limit, caller{connections: 2, length: 10 * time.Second, impatient: true})
		for i := range busy {
			busy[i].length += time.Duration(i) * step // so that they do not end together
		}
		started, _ := crowd(t, limit, catalog.Queue{},
			append(busy, caller{account: "short", connections: 1, length: step, pause: 3 * step, later: 10 * time.Second})...)
		if started["short"] < 6 {
			t.Errorf("%d slots: %d short calls started in a minute", limit, started["short"])
		}
	}
}

// An account that calls a server now and then must not take half of the slots from one that needs them.
func TestRareCallsReserveFewSlots(t *testing.T) {
	for _, burst := range []int{1, 8} {
		a := newAccounts(t)
		for i := range 1200 {
			if i%90 == 0 {
				a.call("rare", burst, step)
			}
			a.step()
			if missing := 12 - a.running("steady"); a.call("steady", missing, time.Second) < missing && i%90 > 0 {
				t.Fatalf("with bursts of %d calls, after %v: %d of 16 slots can be used", burst, time.Duration(i)*step, a.running("steady"))
			}
		}
	}
}

// An account whose calls take long must not keep the slots from one whose calls are short.
func TestActiveAccountsShareSlots(t *testing.T) {
	a := newAccounts(t)
	served := 0
	for i := range 900 {
		a.call("long", 16, 20*time.Second)
		a.step()
		started := a.call("short", 8-a.running("short"), time.Second)
		if i >= 600 {
			served += started
		}
	}
	if served < 7*30 {
		t.Errorf("in 30 s, the account with short calls gets %d of 240 calls through", served)
	}
	if a.call("third", 1, time.Second) != 1 {
		t.Error("no slot is left for a third account")
	}
}

func TestAccountUsesAllSlotsButOneAlone(t *testing.T) {
	a := newAccounts(t)
	for range 3 {
		if got := a.call("only", 16, time.Second); got != 15 {
			t.Errorf("%d calls could start, want 15", got)
		}
		for range 10 {
			a.step()
		}
	}
	for range 1000 {
		a.step()
	}
	if a.call("other", 1, step); len(a.server.accounts) != 1 {
		t.Errorf("%d accounts are remembered, want 1", len(a.server.accounts))
	}
}

// Calls of slow callers yield their slots, but count for their account until they have ended.
func TestSlowCallsYield(t *testing.T) {
	a := newAccounts(t)
	a.call("slow", 16, time.Second)
	slow := a.ends[a.now.Add(time.Second)]
	ended := 0
	for _, slot := range slow {
		slot.Yield(a.now, func() { ended++ })
	}
	slow[0].Keep(a.now)
	if n := a.call("slow", 16, time.Second); n > 0 {
		t.Errorf("the slow account starts %d more calls", n)
	}
	batch, ok := a.server.take(a.now, &Call{Account: "b", Yield: func() { t.Error("a batch call ends before slow streams") }})
	if !ok {
		t.Error("slow streams keep batch calls from a server")
	}
	others := 0
	for _, account := range []string{"a", "b", "c"} {
		others += a.call(account, 4, time.Second)
	}
	if others != 12 || ended != 12 || a.server.inFlight != 16 || a.running("slow") != len(slow) {
		t.Errorf("%d calls started, %d of %d ended, %d run", others, ended, len(slow), a.server.inFlight)
	}
	batch.Release(Result{}, a.now)
	for range 10 {
		a.step()
	}
	if u := a.server; u.inFlight != 0 || u.live != 0 || len(u.slow)+len(u.yielding) > 0 || a.running("slow") != 0 || a.running("a") != 0 {
		t.Errorf("after the end of all calls: %+v", u)
	}
}

// A call that waits because its account has its share delays neither calls of others nor batches.
func TestCallBeyondItsShareDelaysNobody(t *testing.T) {
	a := newAccounts(t)
	pool := &Pool{fixed: []member{{upstream: a.server, weight: 1}}, queue: a.server.queue, random: rand.Float64, now: time.Now}
	a.server.queue.set(pool, &catalog.Inference{Queue: catalog.Queue{Calls: 10, Wait: time.Minute}})
	a.server.queue.refresh = func() {}
	a.now = time.Now()
	a.call("slow", 15, time.Second)
	for _, slot := range a.ends[a.now.Add(time.Second)] {
		slot.Yield(a.now, func() {})
	}
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan *Unavailable)
	go func() {
		_, why := pool.Take(ctx, &Call{Account: "slow"})
		waited <- why
	}()
	await.Until(t, "a call waits", func() bool { return len(a.server.queue.accountsWaiting()) == 1 })
	batch, why := pool.Take(ctx, &Call{Account: "other", Yield: func() {}})
	if why != nil {
		t.Fatalf("a batch call cannot start: %v", why)
	}
	defer batch.Release(Result{}, a.now)
	call := Call{Account: "third"}
	a.server.queue.busy = time.Now() // also if a server has recently rejected a call
	live, why := pool.Take(ctx, &call)
	if why != nil || call.Waited > 0 {
		t.Fatalf("a call of another account waited for %v: %v", call.Waited, why)
	}
	live.Release(Result{}, a.now)
	select {
	case why := <-waited:
		t.Errorf("the call beyond the share ended: %v", why)
	default:
	}
	cancel()
	await.Receive(t, "waited", waited)
}

// A call that one server has rejected and that waits for another, full server delays neither batches nor other calls.
func TestRejectedCallThatWaitsDelaysNobody(t *testing.T) {
	small, large := newAccounts(t).server, newAccounts(t).server
	small.limit, large.queue = 1, small.queue
	pool := &Pool{
		fixed: []member{{upstream: small, weight: 1}, {upstream: large, weight: 1}}, queue: small.queue, random: rand.Float64, now: time.Now,
	}
	pool.queue.set(pool, &catalog.Inference{Queue: catalog.Queue{Calls: 10, Wait: time.Minute}})
	pool.queue.refresh = func() {}
	if _, ok := small.take(time.Now(), &Call{Account: "long"}); !ok {
		t.Fatal("no call could start")
	}
	rejects, _ := large.take(time.Now(), &Call{Account: "rejected"})
	rejects.Release(Result{}, time.Now())
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan *Unavailable)
	go func() {
		_, why := pool.Take(ctx, &Call{Account: "rejected", Tried: []Slot{rejects}})
		waited <- why
	}()
	await.Until(t, "a call waits", func() bool {
		pool.queue.mu.Lock()
		defer pool.queue.mu.Unlock()
		return len(pool.queue.turns) == 1
	})
	pool.queue.busy = time.Now() // the server has just rejected a call
	for _, call := range []*Call{{Account: "other", Yield: func() {}}, {Account: "other"}, {Account: "rejected"}} {
		slot, why := pool.Take(ctx, call)
		if why != nil || call.Waited > 0 {
			t.Fatalf("a call of %s waited for %v: %v", call.Account, call.Waited, why)
		}
		defer slot.Release(Result{}, time.Now())
	}
	cancel()
	await.Receive(t, "waited", waited)
}

// The account with the most calls that yield loses one first, and of these the account that needs the slot.
func TestAccountWithMostCallsLosesOne(t *testing.T) {
	for _, c := range []struct {
		seats, needs string
		want         int
	}{{"a", "b", 0}, {"aabbb", "c", 4}, {"aaabb", "b", 2}, {"abab", "a", 2}, {"abab", "b", 3}, {"abab", "c", 3}, {"abc", "a", 0}} {
		var seats []*seat
		for _, account := range c.seats {
			seats = append(seats, &seat{account: string(account)})
		}
		if got := ending(seats, c.needs); got != c.want {
			t.Errorf("of %q, %d ends for %q, want %d", c.seats, got, c.needs, c.want)
		}
	}
}

// Two accounts with long calls leave a share to a third one with short calls.
func TestThreeAccountsShareSlots(t *testing.T) {
	a := newAccounts(t)
	served := 0
	for i := range 600 {
		a.call("first", 16, 5*time.Second)
		a.call("second", 16, 5*time.Second)
		a.step()
		started := a.call("short", 5-a.running("short"), time.Second)
		if i >= 300 {
			served += started
		}
	}
	if served < 4*30 {
		t.Errorf("in 30 s, the account with short calls gets %d of 150 calls through", served)
	}
}

// Accounts with one call each leave most of the other slots to one that needs them.
func TestSmallAccountsReserveFewSlots(t *testing.T) {
	for small := range 12 {
		a := newAccounts(t)
		for i := range 600 {
			for n := range small {
				name := string(rune('a' + n))
				a.call(name, 1-a.running(name), time.Second)
			}
			a.call("large", 16, time.Second)
			if a.step(); i > 300 && i%10 == 5 && a.server.inFlight < 11 {
				t.Fatalf("beside %d small accounts, %d of 16 slots are used", small, a.server.inFlight)
			}
		}
	}
}

// A burst of short calls ends only a few batch calls, also without a queue. Long calls take their slots.
func TestBurstEndsFewBatchCalls(t *testing.T) {
	for _, c := range []struct {
		length    time.Duration
		least     int
		most      int
		elsewhere bool
	}{{50 * time.Millisecond, 0, 3, false}, {400 * time.Millisecond, 0, 5, false}, {time.Minute, 11, 11, false}, {50 * time.Millisecond, 0, 3, true}, {time.Minute, 11, 11, true}} {
		synctest.Test(t, func(t *testing.T) {
			a := newAccounts(t)
			a.now = time.Now()
			pool := &Pool{fixed: []member{{upstream: a.server, weight: 1}}, queue: a.server.queue, random: rand.Float64, now: time.Now}
			pool.queue.set(pool, &catalog.Inference{})
			pool.queue.refresh = func() {}
			ended := 0
			for range 12 {
				if _, ok := a.server.take(a.now, &Call{Account: "batch", Yield: func() { ended++ }}); !ok {
					t.Fatal("a batch call cannot start")
				}
			}
			for range 15 {
				go func() {
					slot, why := pool.Take(t.Context(), &Call{Account: "burst", Elsewhere: c.elsewhere})
					if why != nil {
						t.Errorf("a live call is rejected: %v", why)
						return
					}
					time.Sleep(c.length)
					slot.Release(Result{}, time.Now())
				}()
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if ended < c.least || ended > c.most {
				t.Errorf("15 calls of %v ended %d of 12 batch calls", c.length, ended)
			}
			time.Sleep(2 * c.length)
		})
	}
}

// A call that waits because a server rejected it delays no batches.
func TestRejectedCallDelaysNoBatches(t *testing.T) {
	a := newAccounts(t)
	pool := &Pool{fixed: []member{{upstream: a.server, weight: 1}}, queue: a.server.queue, random: rand.Float64, now: time.Now}
	pool.queue.set(pool, &catalog.Inference{Queue: catalog.Queue{Calls: 10, Wait: time.Minute}})
	pool.queue.refresh = func() {}
	call := Call{Account: "large"}
	pool.Pause(&call, 10*time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan *Unavailable)
	go func() {
		_, why := pool.Take(ctx, &call)
		waited <- why
	}()
	await.Becomes(t, "waiting calls", 1, func() int64 { return pool.queue.waiting.Load() })
	batch, why := pool.Take(ctx, &Call{Account: "other", Yield: func() {}})
	if why != nil {
		t.Fatalf("a batch call cannot start: %v", why)
	}
	batch.Release(Result{}, a.now)
	cancel()
	await.Receive(t, "waited", waited)
}

// A free slot goes to the account with the fewest running calls, and of these to the one that has used less time.
func TestFewestCallsGoFirst(t *testing.T) {
	for _, remaining := range []int{2, 0} {
		a := newAccounts(t)
		pool := &Pool{fixed: []member{{upstream: a.server, weight: 1}}, queue: a.server.queue, random: rand.Float64, now: time.Now}
		pool.queue.set(pool, &catalog.Inference{Queue: catalog.Queue{Calls: 10, Wait: time.Minute}})
		pool.queue.refresh = func() {}
		a.server.limit, a.now = 3, time.Now().Add(-10*time.Second)
		a.call("many", remaining+1, 10*time.Second)
		a.call("other", 2-remaining, 10*time.Second)
		a.now = a.now.Add(10 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		started := make(chan string, 3)
		for i, account := range []string{"many", "few"} {
			go func() {
				if slot, why := pool.Take(ctx, &Call{Account: account}); why == nil {
					started <- account
					slot.Release(Result{}, time.Now())
				}
				started <- "end"
			}()
			await.Becomes(t, "waiting accounts", i+1, func() int { return len(pool.queue.accountsWaiting()) })
		}
		a.ends[a.now][0].Release(Result{}, a.now)
		if got := await.Receive(t, "started", started); got != "few" {
			t.Errorf("%s is first, and has %d calls", got, remaining)
		}
		cancel()
		for range 2 {
			await.Receive(t, "started", started)
		}
	}
}

// batchAccount calls a server as package batches does: a refusal lowers the number of calls at once, and responses raise
// it again.
type batchAccount struct {
	name            string
	length          time.Duration
	started, atOnce int
	resumes         time.Time
}

func (b *batchAccount) try(a *accounts) {
	running := func() int { return a.server.batch(a.now, b.name).now }
	for running() < b.atOnce && !a.now.Before(b.resumes) {
		slot, ok := a.server.take(a.now, &Call{Account: b.name, Yield: func() {}})
		if !ok {
			if b.atOnce = max(running(), 1); running() == 0 {
				b.resumes = a.now.Add(time.Second)
			}
			return
		}
		end := a.now.Add(b.length)
		a.ends[end] = append(a.ends[end], slot)
		b.started++
	}
}

// runBatches runs batches for two minutes. The first one starts ten seconds before the others. The result is how much of
// the slots' time each used in the last 90 seconds.
func runBatches(a *accounts, batches ...*batchAccount) (used []float64) {
	for i := range 1200 {
		a.step()
		for at, b := range batches {
			if i%10 == 0 {
				b.atOnce = min(b.atOnce+1, 12)
			}
			if i == 300 {
				b.started = 0
			}
			if at == 0 || i >= 100 {
				b.try(a)
			}
		}
	}
	possible := 90 * float64(a.server.limit-a.server.limit/leftFree)
	for _, b := range batches {
		used = append(used, float64(b.started)*b.length.Seconds()/possible)
	}
	return used
}

// Batches of two accounts share a server's slots, also if one of them started earlier.
func TestBatchesShareSlots(t *testing.T) {
	for _, limit := range []int{1, 2, 4, 16} {
		for _, length := range []time.Duration{step, time.Second, 3 * time.Second} {
			a := newAccounts(t)
			a.server.limit = limit
			used := runBatches(a, &batchAccount{name: "first", length: length}, &batchAccount{name: "second", length: length})
			if sum := used[0] + used[1]; used[1] < sum/4 || sum < 0.9 {
				t.Errorf("%d slots, calls of %v: %.2f of the time used", limit, length, used)
			}
		}
	}
}

// Batches share time, not calls: those with long calls must leave one with short calls half of its share at least, and
// the other way round.
func TestBatchesWithLongCallsShareSlots(t *testing.T) {
	for _, limit := range []int{1, 2, 4, 16} {
		for _, long := range []time.Duration{3 * time.Second, 10 * time.Second, 30 * time.Second} {
			a := newAccounts(t)
			a.server.limit = limit
			batches := []*batchAccount{{name: "short", length: step}}
			for _, name := range []string{"a", "b", "c", "d"}[:min(limit, 4)] {
				batches = append(batches, &batchAccount{name: name, length: long})
			}
			used := runBatches(a, batches...)
			share := 1 / float64(len(batches))
			for _, u := range used[1:] {
				if used[0] < share/2 || u < share/4 {
					t.Errorf("%d slots, calls of %v: %.2f of the time used", limit, long, used)
					break
				}
			}
		}
	}
}

// Whatever calls do, a server never has more calls than slots, and every count is right again at the end.
func TestSlotsAreCountedRight(t *testing.T) {
	for seed := range uint64(200) {
		random, a := rand.New(rand.NewPCG(seed, 1)), newAccounts(t)
		running := map[Slot]bool{} // whether the slot has been given to another call
		start := func(call *Call, slot *Slot) {
			ok := false
			if *slot, ok = a.server.take(a.now, call); ok {
				running[*slot] = false
			}
		}
		for range 500 {
			a.now = a.now.Add(step)
			account := string(rune('a' + random.IntN(4)))
			if slot := new(Slot); random.IntN(3) == 0 {
				start(&Call{Account: account, Yield: func() { running[*slot] = true }}, slot)
			} else {
				start(&Call{Account: account}, slot)
			}
			for slot := range running {
				switch random.IntN(20) {
				case 0:
					delete(running, slot)
					slot.Release(Result{}, a.now)
					slot.Yield(a.now, func() { t.Error("an ended call yields") }) // a timer may be late
					slot.Keep(a.now)
				case 1, 2:
					slot.Yield(a.now, func() { running[slot] = true })
				case 3:
					slot.Keep(a.now)
				}
			}
			held := 0
			for _, given := range running {
				if !given {
					held++
				}
			}
			if u := a.server; held > u.limit || held != u.inFlight {
				t.Fatalf("seed %d: %d calls have a slot, %d are counted", seed, held, u.inFlight)
			}
		}
		for slot := range running {
			slot.Release(Result{}, a.now)
		}
		for account, own := range a.server.accounts {
			if own.now != 0 {
				t.Errorf("seed %d: %d calls of %s remain", seed, own.now, account)
			}
		}
		if u := a.server; u.inFlight != 0 || u.live != 0 || len(u.slow)+len(u.yielding) > 0 {
			t.Errorf("seed %d: after the end of all calls: %+v", seed, u)
		}
	}
}
