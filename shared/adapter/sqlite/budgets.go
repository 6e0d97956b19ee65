package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
)

// Budgets uses the machine's clock for allocations. Changes to allocations survive a crash of the
// process, but a power failure may lose the latest of them.
type Budgets struct {
	db      *DB
	machine Machine
}

var _ budget.Store = (*Budgets)(nil)

func (db *DB) Budgets(machine Machine) *Budgets { return &Budgets{db, machine} }

const (
	// keptCounters is how long counters are kept after the end of their window.
	keptCounters = 400 * 24 * time.Hour

	isCounter  = "account = ? and key = ? and period = ? and unit = ? and term = ?"
	addToUsed  = "update budget_counter set used = max(used + ?, 0) where " + isCounter
	usedOf     = "select used from budget_counter where " + isCounter
	beforeTerm = "account = ? and key = ? and period = ? and unit = ? and term < ?"

	forgetCounters = "delete from budget_counter where " + beforeTerm
	forgetWarnings = "delete from budget_warning where " + beforeTerm
)

func (b *Budgets) Budgets(ctx context.Context, account string) ([]budget.Budget, error) {
	return readAll(ctx, b.db.reader, "read budgets", func(r row) (budget.Budget, error) {
		one := budget.Budget{ID: budget.ID{Account: account}}
		err := r.Scan(&one.Key, &one.Period, &one.Unit, &one.Limit, &one.WarnURL)
		return one, err
	}, `select key, period, unit, max_used, warn_url from budget
		where account = ? order by key, period, unit`, account)
}

func readBudget(ctx context.Context, tx *transaction, id budget.ID) (*budget.Budget, error) {
	kept := budget.Budget{ID: id}
	err := tx.QueryRowContext(ctx, `select max_used, warn_url from budget
		where account = ? and key = ? and period = ? and unit = ?`, id.Account, id.Key, id.Period, id.Unit).
		Scan(&kept.Limit, &kept.WarnURL)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &kept, err
}

func (b *Budgets) Set(ctx context.Context, from audit.Origin, one budget.Budget) error {
	// Count the URL three times, because the audit log also stores the budget twice.
	if err := b.db.admitBy(ctx, from, one.Account, 3*len(one.WarnURL)); err != nil {
		return err
	}
	return b.db.write(ctx, "set a budget", func(ctx context.Context, tx *transaction) error {
		before, err := readBudget(ctx, tx, one.ID)
		if err != nil || before != nil && *before == one {
			return err
		}
		entry, err := budget.Entry(from, before, &one)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `insert into budget (account, key, period, unit, max_used, warn_url)
			values (?, ?, ?, ?, ?, ?) on conflict do update set max_used = excluded.max_used, warn_url = excluded.warn_url`,
			one.Account, one.Key, one.Period, one.Unit, one.Limit, one.WarnURL); err != nil {
			return err
		}
		return b.db.note(ctx, tx, entry)
	})
}

func (b *Budgets) Delete(ctx context.Context, from audit.Origin, id budget.ID) error {
	return b.db.write(ctx, "delete a budget", func(ctx context.Context, tx *transaction) error {
		before, err := readBudget(ctx, tx, id)
		if err != nil {
			return err
		}
		if before == nil {
			return fault.New(fault.NotFound, "The budget does not exist.")
		}
		entry, err := budget.Entry(from, before, nil)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx,
			"delete from budget where account = ? and key = ? and period = ? and unit = ?",
			id.Account, id.Key, id.Period, id.Unit); err != nil {
			return err
		}
		return b.db.note(ctx, tx, entry)
	})
}

func (b *Budgets) Used(ctx context.Context, counters []budget.Counter) ([]int64, error) {
	used := make([]int64, len(counters))
	if len(counters) == 0 {
		return used, nil
	}
	return used, b.db.writeVolatile(ctx, "read counters", func(ctx context.Context, tx *transaction) error {
		for i, c := range counters {
			err := b.endDead(ctx, tx, c)
			if err == nil {
				used[i], err = readUsed(ctx, tx, c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// holdBudgets reserves all of a job's holds, or none. If too little remains, it first ends the
// allocations of dead processes. After fault.Exhausted, the caller must roll back.
func (b *Budgets) holdBudgets(ctx context.Context, tx *transaction, claims []budget.Claim) ([]budget.Hold, error) {
	var holds []budget.Hold
	for _, c := range claims {
		remaining, err := b.remaining(ctx, tx, c.Counter, c.Limit, c.Amount)
		if err != nil {
			return nil, err
		}
		if remaining < c.Amount {
			return nil, budget.UsedUp(c.Counter, b.db.now())
		}
		if err := count(ctx, tx, c.Counter, c.Amount, b.db.now()); err != nil {
			return nil, err
		}
		holds = append(holds, budget.Hold{Counter: c.Counter, Amount: c.Amount})
	}
	return holds, nil
}

func settleBudgets(ctx context.Context, tx *transaction, settled []budget.Settlement) error {
	for _, s := range settled {
		if n := s.Returned(); n > 0 {
			if _, err := tx.ExecContext(ctx, addToUsed, append([]any{-n}, counterKey(s.Counter)...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// remaining returns the amount that remains. If that is less than needed, it first ends expired allocations.
func (b *Budgets) remaining(ctx context.Context, tx *transaction, c budget.Counter, limit, needed int64) (int64, error) {
	used, err := readUsed(ctx, tx, c)
	if err != nil || limit-used >= needed {
		return limit - used, err
	}
	if err := b.endDead(ctx, tx, c); err != nil {
		return 0, err
	}
	used, err = readUsed(ctx, tx, c)
	return max(limit-used, 0), err
}

func count(ctx context.Context, tx *transaction, c budget.Counter, amount int64, now time.Time) error {
	n, err := affected(tx.ExecContext(ctx, addToUsed, append([]any{amount}, counterKey(c)...)...))
	if err != nil || n > 0 {
		return err
	}
	old := []any{c.Account, c.Key, c.Period, c.Unit, c.Period.WindowOf(now.Add(-keptCounters))}
	for _, forget := range []string{forgetCounters, forgetWarnings} {
		if _, err := tx.ExecContext(ctx, forget, old...); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, "insert into budget_counter (account, key, period, unit, term, used) values (?, ?, ?, ?, ?, ?)",
		append(counterKey(c), amount)...)
	return err
}

func readUsed(ctx context.Context, q querier, c budget.Counter) (used int64, err error) {
	err = q.QueryRowContext(ctx, usedOf, counterKey(c)...).Scan(&used)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return used, err
}

func counterKey(c budget.Counter) []any { return []any{c.Account, c.Key, c.Period, c.Unit, c.Window} }
