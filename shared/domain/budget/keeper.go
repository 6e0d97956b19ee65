package budget

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookUpAge is how long the budgets of a key are known before they are read again:
	// a change is in force everywhere within a minute
	// (docs/contract/budgets.md#what-counts).
	lookUpAge = 30 * time.Second
	// staleAge is how old they may become while the store cannot be read.
	staleAge = 10 * time.Minute
	// maxLookUps bounds how many keys' budgets are known.
	maxLookUps = 20_000
	// tickEvery is how often shares are looked at: what is not needed returns.
	tickEvery = time.Second
	// storeTime bounds one call of the store.
	storeTime = 10 * time.Second
	// drainTime bounds how long Run tries to give back what is left when it stops, and
	// retryEvery is how often.
	drainTime, retryEvery = 10 * time.Second, 100 * time.Millisecond
)

// KeeperConfig is what a Keeper is made of. Fields are required unless they say otherwise.
type KeeperConfig struct {
	Store Store
	// Machine is a clock that goes on while the process is stopped and that nobody sets.
	Machine interface{ Now() time.Duration }
	// Now decides which window a call is in.
	Now func() time.Time
	// NewID returns an id that no other lease has.
	NewID func() string
	// MayFreeze says that the process may be frozen or ended without notice between two
	// calls, as a function's may: what was spent is then told at the end of each call, and
	// what is not in flight returns by itself when the process has died.
	MayFreeze bool
	// Warn is called when WarnAt and 100 percent of a counter are used, once for each, by
	// one of all processes; it may be nil. It must not block.
	Warn   func(c Counter, percent int)
	Logger *slog.Logger
}

// Keeper lets the calls of one process draw from budgets without a write for each: it
// takes small shares of counters under leases, and gives back what is not needed. The
// methods may be called by any number of goroutines.
//
// As shares are small against what remains, many processes can use up a budget to its
// end; nothing is refused before the store was asked.
type Keeper struct {
	config  KeeperConfig
	windows atomic.Pointer[windows]

	mu      sync.RWMutex
	lookUps map[caller]*lookUp
	shares  map[Counter]*share
	// closing are the shares that could not be ended yet.
	closing []*share
}

// caller is whose budgets are looked up.
type caller struct{ account, key string }

// lookUp is the budgets that apply to a caller.
type lookUp struct {
	budgets []Budget
	read    time.Time
	// reading reports whether somebody reads them again.
	reading atomic.Bool
}

// windows are those of a day.
type windows struct {
	day, month  Window
	begin, ends time.Time
}

// NewKeeper returns a Keeper; Run renews its leases.
func NewKeeper(c KeeperConfig) *Keeper {
	return &Keeper{config: c, lookUps: map[caller]*lookUp{}, shares: map[Counter]*share{}}
}

// Find returns the budgets that apply to the calls of a key, nil if there are none. It
// reads the store at most twice a minute; while that fails, what was read last counts for
// ten minutes. The slice must not be changed.
//
// Errors: those of the store.
func (k *Keeper) Find(ctx context.Context, account, key string) ([]Budget, error) {
	who := caller{account, key}
	k.mu.RLock()
	known := k.lookUps[who]
	k.mu.RUnlock()
	if known == nil {
		found, err := k.lookUp(ctx, who)
		if err != nil {
			return nil, err
		}
		return found.budgets, nil
	}
	age := k.config.Now().Sub(known.read)
	if age >= 0 && age < lookUpAge || !known.reading.CompareAndSwap(false, true) {
		return known.budgets, nil
	}
	found, err := k.lookUp(ctx, who)
	if err == nil {
		return found.budgets, nil
	}
	known.reading.Store(false)
	if age < 0 || age > staleAge {
		return nil, err
	}
	k.config.Logger.LogAttrs(ctx, slog.LevelWarn, "budgets were not read again; the known ones count",
		slog.String("account", account), slog.Duration("age", age), slog.Any("error", err))
	return known.budgets, nil
}

func (k *Keeper) lookUp(ctx context.Context, who caller) (*lookUp, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	read := k.config.Now()
	all, err := k.config.Store.Budgets(ctx, who.account)
	if err != nil {
		return nil, err
	}
	found := &lookUp{read: read}
	for _, b := range all {
		if b.AppliesTo(who.key) {
			found.budgets = append(found.budgets, b)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.lookUps) >= maxLookUps {
		clear(k.lookUps)
	}
	k.lookUps[who] = found
	return found, nil
}

// Claims returns what a job has to take as holds from the counters of the budgets that
// apply to its key, given the most that it can use.
//
// Errors: those of the store.
func (k *Keeper) Claims(ctx context.Context, account, key string, most Amounts) ([]Claim, error) {
	found, err := k.Find(ctx, account, key)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return Claims(found, key, most, k.config.Now()), nil
}

// Reserve reserves the most that a call can use, of the budgets that Find returned for its
// key, in the windows of this moment. Settle ends the reservation.
//
// Errors: fault.Exhausted if one of them has too little left, and nothing is reserved then;
// those of the store.
func (k *Keeper) Reserve(ctx context.Context, found []Budget, most Amounts) (*Reservation, error) {
	if len(found) == 0 {
		return nil, nil
	}
	r := &Reservation{keeper: k, parts: make([]part, 0, len(found))}
	now := k.windowsNow()
	for _, b := range found {
		window := now.day
		if b.Period == Month {
			window = now.month
		}
		r.parts = append(r.parts, part{budget: b, counter: Counter{b.ID, window}})
	}
	if err := r.Change(ctx, most); err != nil {
		return nil, err
	}
	return r, nil
}

// windowsNow returns the windows of this moment.
func (k *Keeper) windowsNow() *windows {
	now := k.config.Now()
	if w := k.windows.Load(); w != nil && now.Before(w.ends) && !now.Before(w.begin) {
		return w
	}
	day := Day.WindowOf(now)
	w := &windows{day: day, month: Month.WindowOf(now), begin: now, ends: day.Ends()}
	k.windows.Store(w)
	return w
}

// share returns the share of a counter, which has nothing yet if it is new.
func (k *Keeper) share(c Counter) *share {
	k.mu.RLock()
	s := k.shares[c]
	k.mu.RUnlock()
	if s != nil {
		return s
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if s = k.shares[c]; s == nil {
		s = &share{keeper: k, lease: Lease{Counter: c, ID: k.config.NewID()}}
		k.shares[c] = s
	}
	return s
}

// drop removes a share that is closed.
func (k *Keeper) drop(s *share) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shares[s.lease.Counter] == s {
		delete(k.shares, s.lease.Counter)
	}
}

// end ends a share that nobody finds any more. If that fails, the next tick tries again.
func (k *Keeper) end(ctx context.Context, s *share) {
	k.drop(s)
	if err := s.end(ctx); err != nil {
		s.failed(ctx, err)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.closing = append(k.closing, s)
	}
}

// Run renews leases and gives back what is not needed until the context ends, and then
// everything. What calls that are under way have reserved then stays used.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			k.drain(context.WithoutCancel(ctx))
			return
		case <-ticker.C:
			for _, s := range k.all() {
				s.tick(ctx)
			}
		}
	}
}

// all returns all shares, and forgets those that are closing.
func (k *Keeper) all() []*share {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.closing
	k.closing = nil
	for _, s := range k.shares {
		all = append(all, s)
	}
	return all
}

// drain ends all leases, and tries again what fails.
func (k *Keeper) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	for {
		for _, s := range k.all() {
			k.end(ctx, s)
		}
		k.mu.RLock()
		left := len(k.closing)
		k.mu.RUnlock()
		if left == 0 {
			return
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			k.config.Logger.Error("shares of budgets were not given back before the stop", "shares", left)
			return
		}
	}
}

// Reservation is what one call has reserved of budgets. One goroutine uses it; nil is one
// of nothing.
type Reservation struct {
	keeper *Keeper
	parts  []part
}

// part is what a call has reserved of one budget, from a share of the counter.
type part struct {
	budget  Budget
	counter Counter
	from    *share
	amount  int64
}

// Change makes the reservation one of other amounts, in the windows that it was made in.
//
// Errors: fault.Exhausted and those of the store, and then nothing is reserved any more.
func (r *Reservation) Change(ctx context.Context, most Amounts) error {
	if r == nil {
		return nil
	}
	for i := range r.parts {
		if err := r.parts[i].change(ctx, r.keeper, most.Of(r.parts[i].budget.Unit)); err != nil {
			r.Settle(ctx, Amounts{})
			return err
		}
	}
	return nil
}

func (p *part) change(ctx context.Context, k *Keeper, amount int64) error {
	amount = min(max(amount, 0), MaxLimit)
	if p.from != nil && amount <= p.amount {
		p.from.put(p.amount - amount)
		p.amount = amount
		return nil
	}
	for amount > p.amount {
		from := p.from
		if from == nil {
			from = k.share(p.counter)
		}
		err := from.draw(ctx, amount-p.amount, p.budget.Limit)
		if errors.Is(err, errClosed) {
			k.drop(from)
			p.from, p.amount = nil, 0 // what was reserved of it is settled without us
			continue
		}
		if err != nil {
			return err
		}
		p.from, p.amount = from, amount
	}
	return nil
}

// Settle ends the reservation by what the call has used, once. More than was reserved is
// counted as far as the budget has room.
func (r *Reservation) Settle(ctx context.Context, used Amounts) {
	if r == nil {
		return
	}
	parts := r.parts
	r.parts = nil
	for i := range parts {
		p := &parts[i]
		n := max(used.Of(p.budget.Unit), 0)
		if n > p.amount {
			p.excess(ctx, r.keeper, n-p.amount)
		}
		if p.from != nil {
			p.from.settle(p.amount, min(n, p.amount))
		}
	}
	if r.keeper.config.MayFreeze {
		r.tell(ctx, parts)
	}
}

// excess reserves what was used beyond the reservation, as far as there is room.
func (p *part) excess(ctx context.Context, k *Keeper, more int64) {
	from := p.from
	if from == nil {
		from = k.share(p.counter)
	}
	p.from = from
	p.amount += from.drawUpTo(ctx, more, p.budget.Limit)
}

// tell tells the store at once what the parts have spent.
func (r *Reservation) tell(ctx context.Context, parts []part) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	var all sync.WaitGroup
	for _, p := range parts {
		if p.from != nil {
			all.Go(func() { p.from.tell(ctx) })
		}
	}
	all.Wait()
}
