package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"cutroom/shared/domain/budget"
)

const (
	renewAllocation = `update budget_lease set share = share + ?, spent = ?, flight = ?, boot = ?, renewed_at = ?
		where id = ? returning share`
	beginLease = `insert into budget_lease
		(id, account, key, period, unit, term, share, spent, flight, boot, renewed_at)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	expiredAllocations = "(boot <> ? or renewed_at <= ?)"
)

func (b *Budgets) Take(ctx context.Context, l budget.Allocation, limit, least, most int64) (taken budget.Taken, err error) {
	err = b.db.writeVolatile(ctx, "take an allocation", func(ctx context.Context, tx *transaction) error {
		remaining, err := b.remaining(ctx, tx, l.Counter, limit, least)
		if err != nil {
			return err
		}
		more := min(remaining, max(least, most))
		if taken = (budget.Taken{Amount: l.Amount, Remaining: remaining}); more < least {
			return nil
		}
		taken.Remaining = remaining - more
		if err := count(ctx, tx, l.Counter, more, b.db.now()); err != nil {
			return err
		}
		taken.Amount, err = b.renew(ctx, tx, l, more)
		if l.Amount > 0 || !errors.Is(err, budget.ErrAllocationEnded) {
			return err
		}
		taken.Amount = more
		_, err = tx.ExecContext(ctx, beginLease, append(append([]any{l.ID}, counterKey(l.Counter)...),
			more, l.Spent, l.Flight, b.machine.Boot(), b.machine.Now().Milliseconds())...)
		return err
	})
	return taken, err
}

func (b *Budgets) Report(ctx context.Context, l budget.Allocation) error {
	return b.db.writeVolatile(ctx, "report an allocation", func(ctx context.Context, tx *transaction) error {
		_, err := b.renew(ctx, tx, l, 0)
		return err
	})
}

// renew renews an allocation, enlarges it by the given amount, and returns its new amount.
func (b *Budgets) renew(ctx context.Context, tx *transaction, l budget.Allocation, more int64) (held int64, err error) {
	err = tx.QueryRowContext(ctx, renewAllocation, more, l.Spent, l.Flight, b.machine.Boot(), b.machine.Now().Milliseconds(),
		l.ID).Scan(&held)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, budget.ErrAllocationEnded
	}
	return held, err
}

func (b *Budgets) Return(ctx context.Context, l budget.Allocation, amount int64) (held int64, err error) {
	amount = max(min(amount, l.Amount-l.Spent), 0)
	err = b.db.writeVolatile(ctx, "return an allocation", func(ctx context.Context, tx *transaction) error {
		var err error
		if held, err = b.renew(ctx, tx, l, -amount); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, addToUsed, append([]any{-amount}, counterKey(l.Counter)...)...)
		return err
	})
	return held, err
}

func (b *Budgets) End(ctx context.Context, l budget.Allocation) error {
	return b.db.writeVolatile(ctx, "end an allocation", func(ctx context.Context, tx *transaction) error {
		err := tx.QueryRowContext(ctx, "delete from budget_lease where id = ? returning share", l.ID).Scan(&l.Amount)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, addToUsed, append([]any{-l.Unused()}, counterKey(l.Counter)...)...)
		}
		return err
	})
}

// endDead ends allocations that have not been renewed for budget.EndAfter or that belong to an
// earlier boot. Amounts reported as spent or in flight stay used.
func (b *Budgets) endDead(ctx context.Context, tx *transaction, c budget.Counter) error {
	boot, dead := b.machine.Boot(), (b.machine.Now() - budget.EndAfter).Milliseconds()
	var expired, unused int64
	err := tx.QueryRowContext(ctx, "select count(*), coalesce(sum(max(share - spent - flight, 0)), 0) from budget_lease where "+
		isCounter+" and "+expiredAllocations, append(counterKey(c), boot, dead)...).Scan(&expired, &unused)
	if err != nil || expired == 0 {
		return err
	}
	if _, err := tx.ExecContext(ctx, "delete from budget_lease where "+isCounter+" and "+expiredAllocations,
		append(counterKey(c), boot, dead)...); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, addToUsed, append([]any{-unused}, counterKey(c)...)...)
	return err
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
