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
	// lookUpAge is how long a key's budgets are cached. A change thus applies everywhere within a
	// minute (docs/contract/budgets.md#what-counts).
	lookUpAge = 30 * time.Second
	// staleAge is how long cached budgets may be used while the store cannot be read.
	staleAge   = 10 * time.Minute
	maxLookUps = 20_000
	// tickEvery is how often allocations are checked for unused amounts to return.
	tickEvery = time.Second
	storeTime = 10 * time.Second
	// drainTime limits how long Run spends returning allocations at shutdown. Run retries at intervals of retryEvery.
	drainTime, retryEvery = 10 * time.Second, 100 * time.Millisecond
)

// All fields of ManagerConfig are required unless stated otherwise.
type ManagerConfig struct {
	Store Store
	// Machine is a clock that cannot be set and that keeps running while the process is suspended.
	Machine interface{ Now() time.Duration }
	Now     func() time.Time
	NewID   func() string
	// MayFreeze is true if the process may be frozen or killed between two calls, as functions can be. In that
	// case each call reports its usage when it ends, and unused amounts are returned when the allocation expires.
	MayFreeze bool
	// Warn is called once across all processes when a counter reaches WarnAt percent, and once when
	// it reaches 100 percent. It must not block. It may be nil.
	Warn   func(c Counter, percent int)
	Logger *slog.Logger
}

// Manager lets the calls of one process draw from budgets with few writes. It takes small
// allocations from counters and returns unused amounts. It is safe for concurrent use.
//
// Allocations are small compared to the remaining amount, so that the processes together can use up
// a budget. The manager checks the store before it rejects a call.
type Manager struct {
	config ManagerConfig

	mu          sync.RWMutex
	lookUps     map[caller]*lookUp
	allocations map[Counter]*localAllocation
	// closing lists allocations that have not been ended successfully yet.
	closing []*localAllocation
}

type caller struct{ account, key string }

type lookUp struct {
	budgets []Budget
	read    time.Time
	// refreshing is true while a goroutine is refreshing the entry.
	refreshing atomic.Bool
}

func NewManager(c ManagerConfig) *Manager {
	return &Manager{config: c, lookUps: map[caller]*lookUp{}, allocations: map[Counter]*localAllocation{}}
}

// Find returns the budgets that apply to a key's calls, or nil if no budget applies. It reads the store at most twice
// per minute. If a read fails, Find uses the last result for up to ten minutes. The caller must not modify the slice.
func (m *Manager) Find(ctx context.Context, account, key string) ([]Budget, error) {
	who := caller{account, key}
	m.mu.RLock()
	known := m.lookUps[who]
	m.mu.RUnlock()
	if known == nil {
		found, err := m.lookUp(ctx, who)
		if err != nil {
			return nil, err
		}
		return found.budgets, nil
	}
	age := m.config.Now().Sub(known.read)
	if age >= 0 && age < lookUpAge || !known.refreshing.CompareAndSwap(false, true) {
		return known.budgets, nil
	}
	found, err := m.lookUp(ctx, who)
	if err == nil {
		return found.budgets, nil
	}
	known.refreshing.Store(false)
	if age < 0 || age > staleAge {
		return nil, err
	}
	m.config.Logger.LogAttrs(ctx, slog.LevelWarn, "cannot refresh budgets; using the cached ones",
		slog.String("account", account), slog.Duration("age", age), slog.Any("error", err))
	return known.budgets, nil
}

func (m *Manager) lookUp(ctx context.Context, who caller) (*lookUp, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	read := m.config.Now()
	all, err := m.config.Store.Budgets(ctx, who.account)
	if err != nil {
		return nil, err
	}
	found := &lookUp{read: read}
	for _, b := range all {
		if b.AppliesTo(who.key) {
			found.budgets = append(found.budgets, b)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lookUps) >= maxLookUps {
		clear(m.lookUps)
	}
	m.lookUps[who] = found
	return found, nil
}

// Claims returns the claims that a job must hold for the given maximum usage.
func (m *Manager) Claims(ctx context.Context, account, key string, most Amounts) ([]Claim, error) {
	found, err := m.Find(ctx, account, key)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return Claims(found, key, most, m.config.Now()), nil
}

// Reserve reserves a call's maximum usage from the budgets that Find returned, in their current
// windows. Settle ends the reservation.
//
// Errors: fault.Exhausted if too little is left of a budget. After an error, nothing is reserved.
func (m *Manager) Reserve(ctx context.Context, found []Budget, most Amounts) (*Reservation, error) {
	if len(found) == 0 {
		return nil, nil
	}
	r := &Reservation{manager: m, amounts: make([]reservedAmount, 0, len(found))}
	now := m.config.Now()
	for _, b := range found {
		r.amounts = append(r.amounts, reservedAmount{budget: b, counter: b.Counter(now)})
	}
	if err := r.Change(ctx, most); err != nil {
		return nil, err
	}
	return r, nil
}

func (m *Manager) allocation(c Counter) *localAllocation {
	m.mu.RLock()
	s := m.allocations[c]
	m.mu.RUnlock()
	if s != nil {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s = m.allocations[c]; s == nil {
		s = &localAllocation{manager: m, stored: Allocation{Counter: c, ID: m.config.NewID()}}
		m.allocations[c] = s
	}
	return s
}

func (m *Manager) drop(s *localAllocation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.allocations[s.stored.Counter] == s {
		delete(m.allocations, s.stored.Counter)
	}
}

// end ends an allocation. If that fails, the next tick tries again.
func (m *Manager) end(ctx context.Context, s *localAllocation) {
	m.drop(s)
	if err := s.end(ctx); err != nil {
		s.failed(ctx, err)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.closing = append(m.closing, s)
	}
}

// Run renews allocations and returns unused amounts until the context ends. Then it returns
// everything except the amounts that running calls have reserved.
func (m *Manager) Run(ctx context.Context) {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			m.drain(context.WithoutCancel(ctx))
			return
		case <-ticker.C:
			for _, s := range m.all() {
				s.tick(ctx)
			}
		}
	}
}

func (m *Manager) all() []*localAllocation {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.closing
	m.closing = nil
	for _, s := range m.allocations {
		all = append(all, s)
	}
	return all
}

// drain ends all allocations and retries failures.
func (m *Manager) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	for {
		for _, s := range m.all() {
			m.end(ctx, s)
		}
		m.mu.RLock()
		left := len(m.closing)
		m.mu.RUnlock()
		if left == 0 {
			return
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			m.config.Logger.Error("cannot return budget allocations before shutdown", "shares", left)
			return
		}
	}
}

// Reservation is the amount that one call has reserved. It may be used by only one goroutine. nil
// is an empty reservation.
type Reservation struct {
	manager *Manager
	amounts []reservedAmount
}

type reservedAmount struct {
	budget  Budget
	counter Counter
	from    *localAllocation
	amount  int64
}

// Change replaces the reserved amounts, in the original windows. After an error, nothing is reserved.
//
// Errors: fault.Exhausted.
func (r *Reservation) Change(ctx context.Context, most Amounts) error {
	if r == nil {
		return nil
	}
	for i := range r.amounts {
		if err := r.amounts[i].change(ctx, r.manager, most.Of(r.amounts[i].budget.Unit)); err != nil {
			r.Settle(ctx, Amounts{})
			return err
		}
	}
	return nil
}

func (p *reservedAmount) change(ctx context.Context, m *Manager, amount int64) error {
	amount = min(max(amount, 0), MaxLimit)
	if p.from != nil && amount <= p.amount {
		p.from.put(p.amount - amount)
		p.amount = amount
		return nil
	}
	for amount > p.amount {
		from := p.from
		if from == nil {
			from = m.allocation(p.counter)
		}
		err := from.draw(ctx, amount-p.amount, p.budget.Limit)
		if errors.Is(err, errClosed) {
			m.drop(from)
			p.from, p.amount = nil, 0 // the store settles reservations of expired allocations
			continue
		}
		if err != nil {
			return err
		}
		p.from, p.amount = from, amount
	}
	return nil
}

// Settle must be called exactly once. Usage beyond the reservation is counted as far as the budget permits.
func (r *Reservation) Settle(ctx context.Context, used Amounts) {
	if r == nil {
		return
	}
	amounts := r.amounts
	r.amounts = nil
	for i := range amounts {
		p := &amounts[i]
		n := max(used.Of(p.budget.Unit), 0)
		if n > p.amount {
			p.excess(ctx, r.manager, n-p.amount)
		}
		if p.from != nil {
			p.from.settle(p.amount, min(n, p.amount))
		}
	}
	if r.manager.config.MayFreeze {
		r.report(ctx, amounts)
	}
}

func (p *reservedAmount) excess(ctx context.Context, m *Manager, more int64) {
	from := p.from
	if from == nil {
		from = m.allocation(p.counter)
	}
	p.from = from
	p.amount += from.drawUpTo(ctx, more, p.budget.Limit)
}

func (r *Reservation) report(ctx context.Context, amounts []reservedAmount) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	var all sync.WaitGroup
	for _, p := range amounts {
		if p.from != nil {
			all.Go(func() { p.from.report(ctx) })
		}
	}
	all.Wait()
}
