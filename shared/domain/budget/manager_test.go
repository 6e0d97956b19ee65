package budget_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

// world is a store and the processes that share it. It uses the clock of a synctest bubble, which starts at midnight.
type world struct {
	*testing.T
	*memory
	started time.Time
	made    atomic.Int64
	stops   []func()
}

type process struct {
	*budget.Manager
	world *world
	stop  func()
}

func inBubble(t *testing.T, run func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, started: time.Now()}
		w.memory = newMemory(w.Now)
		w.taken = func(used, limit int64) {
			if used > limit {
				t.Errorf("used %d of %d", used, limit)
			}
		}
		defer func() {
			for _, stop := range w.stops {
				stop()
			}
		}()
		run(w)
	})
}

func (w *world) Now() time.Duration { return time.Since(w.started) }

func (w *world) start(change func(*budget.ManagerConfig)) *process {
	c := budget.ManagerConfig{
		Store: w.memory, Machine: w, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		NewID: func() string { return fmt.Sprint("allocation-", w.made.Add(1)) },
	}
	if change != nil {
		change(&c)
	}
	p := &process{Manager: budget.NewManager(c), world: w}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	p.stop = func() {
		cancel()
		<-done
	}
	w.stops = append(w.stops, p.stop)
	return p
}

// of sets the daily budget and returns its counter.
func (w *world) of(limit int64) budget.Counter {
	b := budget.Budget{ID: budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Cost}, Limit: limit}
	conformance.OK(w, w.Set(w.Context(), audit.Operator(time.Now()), b))
	return b.Counter(time.Now())
}

func (p *process) reserve(most int64) (*budget.Reservation, error) {
	found, err := p.Find(context.Background(), "acme", "key_1")
	if err != nil {
		return nil, err
	}
	return p.Reserve(context.Background(), found, budget.Amounts{Cost: most})
}

func (p *process) must(most int64) *budget.Reservation {
	p.world.Helper()
	r, err := p.reserve(most)
	conformance.OK(p.world, err)
	return r
}

func settle(r *budget.Reservation, used int64) {
	r.Settle(context.Background(), budget.Amounts{Cost: used})
}

func (w *world) uses(c budget.Counter, want int64) {
	w.Helper()
	used, err := w.Used(w.Context(), []budget.Counter{c})
	if err != nil || used[0] != want {
		w.Fatalf("used %d, %v; want %d", used, err, want)
	}
}

// later advances the time and waits until all goroutines are idle.
func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Thousands of calls need few store writes, and unused amounts are returned within seconds.
func TestManyCallsShareOneAllocation(t *testing.T) {
	inBubble(t, func(w *world) {
		c, p := w.of(1_000_000), w.start(nil)
		for range 2000 {
			r := p.must(100)
			time.Sleep(time.Millisecond)
			settle(r, 10)
		}
		if n := w.called("Take"); n > 20 {
			t.Errorf("2000 calls took %d allocations", n)
		}
		if n := w.called("Budgets"); n != 1 {
			t.Errorf("budgets were read %d times in two seconds", n)
		}
		later(5 * time.Second)
		w.uses(c, 20_000)
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.allocations) > 0 {
			t.Errorf("a process without calls has %d allocations", len(w.allocations))
		}
	})
}

func TestAccountsWithoutBudgetsCostOnlyLookups(t *testing.T) {
	inBubble(t, func(w *world) {
		p := w.start(nil)
		for range 100 {
			if r := p.must(5); r != nil {
				t.Fatal("an amount was reserved")
			}
			var none *budget.Reservation
			settle(none, 5)
			time.Sleep(time.Second)
		}
		if n := w.called("Budgets"); n > 4 || w.called("Take", "Report", "End", "Return") > 0 {
			t.Errorf("budgets were read %d times in 100 seconds", n)
		}
	})
}

func TestProcessesUseUpABudgetTogether(t *testing.T) {
	inBubble(t, func(w *world) {
		const limit, most, used, callers = 100_000, 70, 33, 20
		c := w.of(limit)
		var spent atomic.Int64
		var all sync.WaitGroup
		var processes []*process
		for range 16 {
			p := w.start(nil)
			processes = append(processes, p)
			for range callers {
				all.Go(func() {
					for refused := 0; refused < 20; {
						r, err := p.reserve(most)
						if fault.Is(err, fault.Exhausted) {
							refused++
							time.Sleep(time.Second)
							continue
						}
						if err != nil {
							t.Error(err)
							return
						}
						time.Sleep(rand.N(20 * time.Millisecond))
						settle(r, used)
						spent.Add(used)
					}
				})
			}
		}
		all.Wait()
		later(5 * time.Second)
		w.uses(c, spent.Load())
		if left := limit - spent.Load(); left >= most {
			t.Errorf("%d remain, but a call was rejected", left)
		}
		t.Logf("%d calls, %d store calls", spent.Load()/used, w.called("Take", "Report", "End", "Return"))
		for _, p := range processes {
			p.stop()
		}
		w.uses(c, spent.Load())
	})
}

func TestExhaustedBudgetRejectsCalls(t *testing.T) {
	inBubble(t, func(w *world) {
		c, p := w.of(100), w.start(nil)
		settle(p.must(100), 95)
		for range 1000 {
			_, err := p.reserve(6)
			var refusal *fault.Error
			if !errors.As(err, &refusal) || refusal.Code != fault.Exhausted || refusal.RetryAfter != 24*time.Hour-w.Now() {
				t.Fatalf("error %v", err)
			}
			time.Sleep(time.Millisecond)
		}
		if n := w.called("Take"); n > 6 {
			t.Errorf("the store was called %d times in a second", n)
		}
		settle(p.must(5), 5)
		later(5 * time.Second)
		w.uses(c, 100)
		time.Sleep(time.Until(c.Window.Ends()))
		settle(p.must(100), 1)
	})
}

// A call counts toward the window in which it starts, even if it ends in the next one.
func TestCallCountsInItsFirstWindow(t *testing.T) {
	inBubble(t, func(w *world) {
		c, p := w.of(100), w.start(nil)
		time.Sleep(24*time.Hour - time.Second)
		before := p.must(60)
		time.Sleep(2 * time.Second)
		after := p.must(70)
		settle(before, 50)
		later(5 * time.Second)
		w.uses(c, 50)
		tomorrow := c
		tomorrow.Window = "2000-01-02"
		settle(after, 7)
		later(5 * time.Second)
		w.uses(tomorrow, 7)
	})
}

// A process that stays suspended until its allocation has expired draws nothing more from it.
func TestSuspendedProcessSpendsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		mayFreeze bool
		// want is how much of an allocation of 70 stays used after 10 were spent and 30 reserved.
		want int64
	}{"a server": {false, 70}, "a function": {true, 40}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				counter := w.of(1000)
				asleep := atomic.Bool{}
				frozen := w.start(func(k *budget.ManagerConfig) {
					k.MayFreeze = c.mayFreeze
					k.Store = sleeper{w.memory, &asleep}
				})
				settle(frozen.must(70), 10)
				under := frozen.must(30)
				asleep.Store(true)
				time.Sleep(budget.EndAfter + budget.RenewEvery)
				w.uses(counter, c.want)
				asleep.Store(false)
				settle(frozen.must(20), 20)
				settle(under, 30)
				later(10 * time.Second)
				w.uses(counter, c.want+20)
			})
		})
	}
}

type sleeper struct {
	budget.Store
	asleep *atomic.Bool
}

func (s sleeper) Report(ctx context.Context, l budget.Allocation) error {
	if s.asleep.Load() {
		return errors.New("asleep")
	}
	return s.Store.Report(ctx, l)
}

func (s sleeper) Return(ctx context.Context, l budget.Allocation, amount int64) (int64, error) {
	if s.asleep.Load() {
		return 0, errors.New("asleep")
	}
	return s.Store.Return(ctx, l, amount)
}

func TestLongCallKeepsItsReservation(t *testing.T) {
	inBubble(t, func(w *world) {
		c, p := w.of(100_000), w.start(nil)
		long := p.must(40)
		for range 50 {
			settle(p.must(40), 1)
		}
		later(20 * time.Minute)
		w.uses(c, 40+50)
		settle(long, 33)
		later(5 * time.Second)
		w.uses(c, 33+50)
	})
}

func TestShutdownReturnsUnusedAmounts(t *testing.T) {
	inBubble(t, func(w *world) {
		c, p := w.of(1000), w.start(nil)
		settle(p.must(50), 5)
		p.must(30)
		p.stop()
		w.uses(c, 35)
	})
}

// A function reports each call's usage when the call ends, with at most one write per call on
// average. So a function that is never woken again leaves nothing reserved.
func TestFunctionReportsEachCall(t *testing.T) {
	inBubble(t, func(w *world) {
		const calls = 1000
		c := w.of(10_000_000)
		p := w.start(func(k *budget.ManagerConfig) { k.MayFreeze = true })
		p.stop() // the process is frozen after the call
		for range calls {
			settle(p.must(100), 7)
			time.Sleep(10 * time.Millisecond)
		}
		writes := w.called("Take", "Report", "End", "Return")
		if writes > calls*110/100 {
			t.Errorf("%d calls took %d store calls", calls, writes)
		}
		time.Sleep(budget.EndAfter)
		w.uses(c, calls*7)
	})
}

func TestFunctionsUseUpABudget(t *testing.T) {
	inBubble(t, func(w *world) {
		const limit, most, used = 10_000, 100, 40
		c := w.of(limit)
		spent := int64(0)
		var functions []*process
		for range 50 {
			p := w.start(func(k *budget.ManagerConfig) { k.MayFreeze = true })
			p.stop()
			functions = append(functions, p)
		}
		for refused := 0; refused < len(functions); {
			for _, p := range functions {
				r, err := p.reserve(most)
				if err != nil {
					conformance.Fails(t, err, fault.Exhausted)
					refused++
					continue
				}
				settle(r, used)
				spent += used
			}
		}
		w.uses(c, spent)
		if limit-spent >= most {
			t.Errorf("%d remain, but a call was rejected", limit-spent)
		}
	})
}

func TestUsageBeyondReservationIsCounted(t *testing.T) {
	inBubble(t, func(w *world) {
		c, p := w.of(100), w.start(nil)
		settle(p.must(10), 60)
		settle(p.must(10), 1000)
		later(5 * time.Second)
		w.uses(c, 100)
	})
}

// A call that is moved to another catalog row reserves that row's maximum cost.
func TestReservationCanBeChanged(t *testing.T) {
	inBubble(t, func(w *world) {
		c, p := w.of(100), w.start(nil)
		r := p.must(40)
		conformance.OK(t, r.Change(w.Context(), budget.Amounts{Cost: 90}))
		_, err := p.reserve(11)
		conformance.Fails(t, err, fault.Exhausted)
		conformance.OK(t, r.Change(w.Context(), budget.Amounts{Cost: 20}))
		conformance.Fails(t, r.Change(w.Context(), budget.Amounts{Cost: 101}), fault.Exhausted)
		settle(r, 99) // the change was rejected, so the call was not made
		later(5 * time.Second)
		w.uses(c, 0)
	})
}

// A call counts against all budgets that apply, or against none.
func TestReservationIsAllOrNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		account, p := w.of(1000), w.start(nil)
		key := budget.Budget{
			ID: budget.ID{Account: "acme", Key: "key_1", Period: budget.Month, Unit: budget.Cost}, Limit: 50,
		}
		conformance.OK(t, w.Set(w.Context(), audit.Operator(time.Now()), key))
		_, err := p.reserve(51)
		conformance.Fails(t, err, fault.Exhausted)
		settle(p.must(50), 20)
		later(5 * time.Second)
		w.uses(account, 20)
		w.uses(key.Counter(time.Now()), 20)
	})
}

// A warning is due once at 80 % and once at 100 %, however many processes there are.
func TestWarningsAreSentOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		c := w.of(1000)
		var mu sync.Mutex
		var warned []int
		warn := func(k *budget.ManagerConfig) {
			k.Warn = func(of budget.Counter, percent int) {
				mu.Lock()
				defer mu.Unlock()
				if warned = append(warned, percent); of != c {
					t.Errorf("warnings: %v", of)
				}
			}
		}
		one, two := w.start(warn), w.start(warn)
		for i, want := range [][]int{700: {}, 799: {80}, 850: {80}, 999: {80, 100}, 1005: {80, 100}} {
			p := []*process{one, two}[i%2]
			if r, err := p.reserve(1); err == nil {
				settle(r, 1)
			}
			if want != nil {
				later(3 * time.Second)
				mu.Lock()
				conformance.SameList(t, fmt.Sprintf("the warnings after call %d", i), warned, want)
				mu.Unlock()
			}
		}
	})
}

// The store may fail before or after each call takes effect.
func TestLimitHoldsWhenStoreFails(t *testing.T) {
	inBubble(t, func(w *world) {
		const limit = 500_000
		c := w.of(limit)
		var failing atomic.Bool
		w.fail = func(bool) error {
			if failing.Load() && rand.N(4) == 0 {
				return fault.New(fault.Unavailable, "The records are busy.")
			}
			return nil
		}
		var spent atomic.Int64
		var all sync.WaitGroup
		for i := range 6 {
			p := w.start(func(k *budget.ManagerConfig) { k.MayFreeze = i%2 == 0 })
			p.must(0)
			for range 5 {
				all.Go(func() {
					for range 200 {
						most := rand.N(int64(100))
						r, err := p.reserve(most)
						time.Sleep(rand.N(100 * time.Millisecond))
						if err == nil {
							used := rand.N(most + 1)
							settle(r, used)
							spent.Add(used)
						}
					}
				})
			}
		}
		failing.Store(true)
		all.Wait()
		failing.Store(false)
		later(time.Minute)
		w.uses(c, spent.Load())
		t.Logf("spent %d of %d, %d store calls", spent.Load(), limit,
			w.called("Take", "Report", "End", "Return"))
	})
}

func TestChangesApplyWithinAMinute(t *testing.T) {
	inBubble(t, func(w *world) {
		c, p := w.of(10), w.start(nil)
		_, err := p.reserve(11)
		conformance.Fails(t, err, fault.Exhausted)
		w.of(100)
		time.Sleep(31 * time.Second)
		settle(p.must(11), 0)
		broken := true
		w.fail = func(bool) error {
			if broken {
				return errors.New("broken")
			}
			return nil
		}
		conformance.OK(t, w.Delete(w.Context(), audit.Operator(time.Now()), c.ID))
		time.Sleep(5 * time.Minute)
		if found, err := p.Find(w.Context(), "acme", "key_1"); err != nil || len(found) != 1 {
			t.Errorf("found %v, %v", found, err)
		}
		if _, err := p.Find(w.Context(), "zoo", ""); err == nil {
			t.Error("found budgets that were never read")
		}
		time.Sleep(6 * time.Minute)
		if _, err := p.Find(w.Context(), "acme", "key_1"); err == nil {
			t.Error("budgets that were not read for ten minutes still apply")
		}
		broken = false
		if found, err := p.Find(w.Context(), "acme", "key_1"); err != nil || len(found) != 0 {
			t.Errorf("found %v, %v", found, err)
		}
		_, err = p.Set(w.Context(), audit.Operator(time.Now()), budget.Setting{ID: c.ID, Limit: 5})
		conformance.OK(t, err)
		if found, err := p.Find(w.Context(), "acme", "key_1"); err != nil || len(found) != 1 {
			t.Errorf("found %v, %v", found, err)
		}
	})
}
