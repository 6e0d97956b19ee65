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
	// portion limits the spare amount of a share to this fraction of the remaining amount.
	portion = 32
	// ahead is how many calls a share lasts in a process that may be frozen.
	ahead = 16
	// refusedFor is how long a refusal is cached, so that callers over a budget do not all ask the store.
	refusedFor = 500 * time.Millisecond
)

var errClosed = errors.New("budget: the share is closed")

// share is this process's share of a counter. Calls draw from it in memory. At most one call of the
// store for it runs at a time.
type localAllocation struct {
	manager *Manager

	mu sync.Mutex
	// lease is the store's state at least: after a failed call, Share is the smaller of the two
	// possible values. Flight is not used.
	stored Allocation
	// reserved is the amount that running calls have drawn. wanted is the amount that calls wait for.
	reserved, wanted int64
	// renewed is when the last successful call of the store started.
	renewed time.Duration
	// busy is closed when the running call of the store has ended.
	busy chan struct{}
	// drawn is the amount drawn since the last tick. growth is the spare amount of the last Take.
	drawn, growth int64
	// remaining is the amount left on the counter at the last call. Calls are refused until refusedUntil.
	remaining    int64
	refusedUntil time.Duration
	// warned is the highest percentage with a warning.
	warned int
	// If begun is set, the store may know the lease. If closed is set, no call may draw from it any more.
	begun, closed bool
}

// available is the amount that can be drawn. The lock must be held.
func (s *localAllocation) available() int64 { return s.stored.Amount - s.stored.Spent - s.reserved }

// draw reserves an amount for a call. It asks the store if the share has too little.
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

// reserve reserves an amount if the share has it. The lock must be held.
func (s *localAllocation) reserve(amount int64, now time.Duration) bool {
	if s.available() < amount || s.stored.Amount > 0 && now-s.renewed >= FenceAfter {
		return false
	}
	s.reserved += amount
	s.drawn += amount
	return true
}

// waitForOther waits for the running call of the store. If that has not started yet, it may take
// for this call too. The lock must be held and is released.
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

// begin starts a call of the store. The lock must be held, and no other call may be running.
func (s *localAllocation) begin() { s.busy, s.begun = make(chan struct{}), true }

// finish ends a call of the store. The lock must be held.
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

// told returns the lease as reported to the store. The lock must be held. In a process that is never
// frozen, the whole allocation counts as in flight, because a killed process does not report its calls'
// use.
func (s *localAllocation) reported() Allocation {
	l := s.stored
	l.Flight = MaxLimit
	if s.manager.config.MayFreeze {
		l.Flight = s.reserved
	}
	return l
}

// fill takes the missing amount for a call and reserves it. If nothing is missing, it renews the
// lease. The call of the store must have started. refused reports whether too little remains.
func (s *localAllocation) fill(ctx context.Context, amount, limit int64) (drawn, refused bool, err error) {
	s.mu.Lock()
	lease, began := s.reported(), s.manager.config.Machine.Now()
	missing := amount - s.available()
	most := missing + s.wanted + s.extra(amount)
	if s.manager.config.MayFreeze {
		lease.Flight += amount
	}
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	taken := Taken{Amount: lease.Amount}
	if missing > 0 {
		taken, err = s.manager.config.Store.Take(ctx, lease, limit, missing, most)
	} else {
		err = s.manager.config.Store.Report(ctx, lease)
	}
	s.mu.Lock()
	refused = err == nil && missing > 0 && taken.Amount == lease.Amount
	renewed := s.renewed
	s.finish(began, err)
	switch {
	case err != nil:
	case refused:
		s.renewed = renewed // a refusal renews nothing
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

// extra returns the spare amount to take for future calls: twice the last one while calls continue,
// and little compared to the remaining amount. The lock must be held.
func (s *localAllocation) extra(amount int64) int64 {
	more := max(2*s.growth, amount)
	if s.manager.config.MayFreeze {
		more = ahead * min(amount, MaxLimit/ahead)
	}
	return min(more, s.remaining/portion)
}

// settle ends the reservation of a call with the used amount.
func (s *localAllocation) settle(amount, used int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved -= amount
	s.stored.Spent += used
}

// put returns a part of a drawn amount.
func (s *localAllocation) put(amount int64) { s.settle(amount, 0) }

// drawUpTo reserves up to an amount and returns the reserved amount.
func (s *localAllocation) drawUpTo(ctx context.Context, amount, limit int64) int64 {
	for range 3 { // others may take the rest
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

// tell reports how much was spent. If other calls are in flight, the last one reports for all. If the
// allocation is large compared to the remaining amount, it returns at once.
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
	lease, began := s.reported(), s.manager.config.Machine.Now()
	s.mu.Unlock()
	err := s.manager.config.Store.Report(ctx, lease)
	s.mu.Lock()
	s.finish(began, err)
	s.mu.Unlock()
	if err != nil {
		s.failed(ctx, err)
	}
}

// tick renews the lease, returns unused amounts, and ends an unused lease.
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
	lease := s.reported()
	s.stored.Amount -= spare // even if the call fails, no call draws it any more
	s.growth = 0
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	share, err := lease.Amount, error(nil)
	if spare > 0 {
		share, err = s.manager.config.Store.Return(ctx, lease, spare)
	} else {
		err = s.manager.config.Store.Report(ctx, lease)
	}
	s.mu.Lock()
	if err == nil {
		s.stored.Amount = share
	}
	s.finish(began, err)
	s.mu.Unlock()
	if err != nil {
		s.failed(ctx, err)
	}
}

// end closes the share and ends its lease. Reserved amounts stay used.
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
	lease, begun := s.stored, s.begun
	lease.Flight = s.reserved
	s.mu.Unlock()
	if !begun {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	err := s.manager.config.Store.End(ctx, lease)
	if err == nil {
		s.mu.Lock()
		s.begun = false
		s.mu.Unlock()
	}
	return err
}

// failed logs a call of the store that must be repeated.
func (s *localAllocation) failed(ctx context.Context, err error) {
	s.manager.config.Logger.LogAttrs(ctx, slog.LevelWarn, "a budget allocation could not be reported; trying again",
		slog.String("account", s.stored.Account), slog.String("unit", string(s.stored.Unit)),
		slog.String("window", string(s.stored.Window)), slog.Any("error", err))
}

// warn makes the keeper check for a due warning, and remembers its percentage.
func (s *localAllocation) warn(ctx context.Context, missed int64) {
	percent := s.manager.warn(ctx, s.stored.Counter, missed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warned = max(s.warned, percent)
}
