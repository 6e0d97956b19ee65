package budget

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// portion limits an allocation's spare amount to 1/portion of the remaining amount.
	portion = 32
	// ahead is the number of calls that an allocation covers in a process that may be frozen.
	ahead = 16
	// refusedFor is how long a rejection is cached, so that callers over a budget do not all query the store.
	refusedFor = 500 * time.Millisecond
)

var errClosed = errors.New("budget: the allocation is closed")

// localAllocation is this process's allocation on a counter. Calls draw from it in memory. It has
// at most one store call in progress.
type localAllocation struct {
	manager *Manager

	mu sync.Mutex
	// stored is the last known allocation in the store. After a failed call, Amount is the smaller of the
	// two possible values. Flight is not used.
	stored Allocation
	// reserved is the amount drawn by running calls. wanted is the amount that waiting calls need.
	reserved, wanted int64
	// renewed is when the last successful store call started.
	renewed time.Duration
	busy    chan struct{} // closed when the running store call ends
	// drawn is the amount drawn since the last tick. growth is the spare amount taken by the last Take.
	drawn, growth int64
	// remaining is the amount left on the counter at the last store call. Calls are rejected until refusedUntil.
	remaining    int64
	refusedUntil time.Duration
	// warned is the highest percentage for which a warning has been recorded.
	warned int
	// started means that the store may know the allocation. closed means that calls may no longer draw from it.
	started, closed bool
}

// available returns the amount that calls can draw. The lock must be held.
func (s *localAllocation) available() int64 { return s.stored.Amount - s.stored.Spent - s.reserved }

// draw reserves an amount for a call. If the allocation is too small, draw tries to enlarge it.
//
// Errors: fault.Exhausted; errClosed.
func (s *localAllocation) draw(ctx context.Context, amount, limit int64) error {
	for refused := false; ; {
		s.mu.Lock()
		now := s.manager.config.Machine.Now()
		switch {
		case s.closed:
			s.mu.Unlock()
			return errClosed
		case s.reserve(amount, now):
			s.mu.Unlock()
			return nil
		case refused || s.refusedUntil > now && amount > s.available()+s.remaining:
			s.mu.Unlock()
			return UsedUp(s.stored.Counter, s.manager.config.Now())
		case s.busy != nil:
			if err := s.waitForOther(ctx, amount); err != nil {
				return err
			}
			continue
		}
		s.begin()
		s.mu.Unlock()
		drawn, refusal, err := s.fill(ctx, amount, limit)
		switch {
		case drawn:
			return nil
		case err != nil && !errors.Is(err, ErrAllocationEnded):
			return err
		}
		refused = refusal
	}
}

// The lock must be held.
func (s *localAllocation) reserve(amount int64, now time.Duration) bool {
	if s.available() < amount || s.stored.Amount > 0 && now-s.renewed >= FenceAfter {
		return false
	}
	s.reserved += amount
	s.drawn += amount
	return true
}

// waitForOther waits until the running store call ends. The next store call may also take the
// amount that this call needs. The lock must be held; waitForOther releases it.
func (s *localAllocation) waitForOther(ctx context.Context, amount int64) error {
	busy := s.busy
	s.wanted += amount
	s.mu.Unlock()
	err := wait(ctx, busy)
	s.mu.Lock()
	s.wanted -= amount
	s.mu.Unlock()
	return err
}

func wait(ctx context.Context, ended <-chan struct{}) error {
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin starts a store call. The lock must be held, and no other store call may be running.
func (s *localAllocation) begin() { s.busy, s.started = make(chan struct{}), true }

// The lock must be held.
func (s *localAllocation) finish(began time.Duration, err error) {
	close(s.busy)
	s.busy = nil
	switch {
	case err == nil:
		s.renewed = began
	case errors.Is(err, ErrAllocationEnded):
		s.closed = true
	}
}

// reported returns the allocation as it must be reported to the store. In a process that is never frozen, the entire
// allocation counts as in flight, because a killed process does not report its calls. The lock must be held.
func (s *localAllocation) reported() Allocation {
	l := s.stored
	l.Flight = MaxLimit
	if s.manager.config.MayFreeze {
		l.Flight = s.reserved
	}
	return l
}

// fill takes a call's missing amount from the store, and reserves it. If nothing is missing, fill only renews the
// allocation. The caller must have called begin. refused reports that too little remains.
func (s *localAllocation) fill(ctx context.Context, amount, limit int64) (drawn, refused bool, err error) {
	s.mu.Lock()
	report, began := s.reported(), s.manager.config.Machine.Now()
	missing := amount - s.available()
	most := missing + s.wanted + s.extra(amount)
	if s.manager.config.MayFreeze {
		report.Flight += amount
	}
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	taken := Taken{Amount: report.Amount}
	if missing > 0 {
		taken, err = s.manager.config.Store.Take(ctx, report, limit, missing, most)
	} else {
		err = s.manager.config.Store.Report(ctx, report)
	}
	s.mu.Lock()
	refused = err == nil && missing > 0 && taken.Amount == report.Amount
	renewed := s.renewed
	s.finish(began, err)
	switch {
	case err != nil:
	case refused:
		s.renewed = renewed // a rejection does not renew the allocation
		s.remaining, s.refusedUntil = taken.Remaining, began+refusedFor
	case missing > 0:
		s.stored.Amount, s.remaining, s.refusedUntil, s.growth = taken.Amount, taken.Remaining, 0, most-missing
	}
	if err == nil && !refused {
		drawn, missing = s.reserve(amount, began), 0
	}
	due := err == nil && Warnable(limit-s.remaining, limit, missing) > s.warned
	s.mu.Unlock()
	if due {
		s.warn(ctx, missing)
	}
	return drawn, refused, err
}

// extra returns the amount to take in advance for future calls. It doubles as long as calls
// continue, but stays small compared to the remaining amount. The lock must be held.
func (s *localAllocation) extra(amount int64) int64 {
	more := max(2*s.growth, amount)
	if s.manager.config.MayFreeze {
		more = ahead * min(amount, MaxLimit/ahead)
	}
	return min(more, s.remaining/portion)
}

func (s *localAllocation) settle(amount, used int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved -= amount
	s.stored.Spent += used
}

func (s *localAllocation) put(amount int64) { s.settle(amount, 0) }

func (s *localAllocation) drawUpTo(ctx context.Context, amount, limit int64) int64 {
	for range 3 { // other calls may draw the amount before this call does
		err := s.draw(context.WithoutCancel(ctx), amount, limit)
		if err == nil {
			return amount
		}
		s.mu.Lock()
		amount = min(amount, s.available()+s.remaining)
		s.mu.Unlock()
		if amount <= 0 || !fault.Is(err, fault.Exhausted) {
			return 0
		}
	}
	return 0
}

// report reports the spent amount to the store. If other calls are in flight, the last one reports
// for all. If the allocation is large compared to the remaining amount, report ends the allocation.
func (s *localAllocation) report(ctx context.Context) {
	s.mu.Lock()
	if s.busy != nil || s.closed || s.reserved > 0 || s.stored.Amount == 0 {
		s.mu.Unlock()
		return
	}
	if s.available() > s.remaining/portion {
		s.closed = true
		s.mu.Unlock()
		s.manager.end(ctx, s)
		return
	}
	s.begin()
	report, began := s.reported(), s.manager.config.Machine.Now()
	s.mu.Unlock()
	err := s.manager.config.Store.Report(ctx, report)
	s.mu.Lock()
	s.finish(began, err)
	s.mu.Unlock()
	if err != nil {
		s.failed(ctx, err)
	}
}

// tick renews the allocation, returns unused amounts, and ends an idle allocation.
func (s *localAllocation) tick(ctx context.Context) {
	s.mu.Lock()
	idle := s.drawn == 0
	s.drawn = 0
	began := s.manager.config.Machine.Now()
	switch {
	case s.busy != nil && !s.closed:
		s.mu.Unlock()
		return
	case s.closed, idle && s.reserved == 0 && s.refusedUntil <= began:
		s.closed = true
		s.mu.Unlock()
		s.manager.end(ctx, s)
		return
	}
	spare := int64(0)
	if idle {
		spare = max(s.available(), 0)
	}
	if spare == 0 && began-s.renewed < RenewEvery {
		s.mu.Unlock()
		return
	}
	s.begin()
	report := s.reported()
	s.stored.Amount -= spare // do not draw this amount again, even if the store call fails
	s.growth = 0
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	amount, err := report.Amount, error(nil)
	if spare > 0 {
		amount, err = s.manager.config.Store.Return(ctx, report, spare)
	} else {
		err = s.manager.config.Store.Report(ctx, report)
	}
	s.mu.Lock()
	if err == nil {
		s.stored.Amount = amount
	}
	s.finish(began, err)
	s.mu.Unlock()
	if err != nil {
		s.failed(ctx, err)
	}
}

// end closes the allocation. Reserved amounts stay used.
func (s *localAllocation) end(ctx context.Context) error {
	s.mu.Lock()
	for s.busy != nil {
		busy := s.busy
		s.mu.Unlock()
		if err := wait(ctx, busy); err != nil {
			return err
		}
		s.mu.Lock()
	}
	s.closed = true
	report, started := s.stored, s.started
	report.Flight = s.reserved
	s.mu.Unlock()
	if !started {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	err := s.manager.config.Store.End(ctx, report)
	if err == nil {
		s.mu.Lock()
		s.started = false
		s.mu.Unlock()
	}
	return err
}

func (s *localAllocation) failed(ctx context.Context, err error) {
	s.manager.config.Logger.LogAttrs(ctx, slog.LevelWarn, "cannot report a budget allocation; trying again",
		slog.String("account", s.stored.Account), slog.String("unit", string(s.stored.Unit)),
		slog.String("window", string(s.stored.Window)), slog.Any("error", err))
}

func (s *localAllocation) warn(ctx context.Context, missed int64) {
	percent := s.manager.warn(ctx, s.stored.Counter, missed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warned = max(s.warned, percent)
}
