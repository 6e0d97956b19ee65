package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
)

const (
	stateOfCounter = `select max_used, warn_url, used, warned from budget_counter join budget using (account, key, period, unit)
		where ` + isCounter
	keepWarning = `insert into budget_warning (id, account, key, period, unit, term, percent, max_used, used, url, at)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	warningByID = `select account, key, period, unit, term, percent, max_used, used, url, at from budget_warning
		where id = ?`
)

// If no warning is due, Warn only reads.
func (b *Budgets) Warn(ctx context.Context, c budget.Counter, missed int64, at time.Time) (budget.Noted, error) {
	at = at.UTC().Truncate(time.Millisecond)
	noted, err := findWarning(ctx, b.db.reader, c, missed, at)
	if err != nil || noted.Warning.Percent == 0 {
		return noted, storeError("look up a warning", err)
	}
	return noted, b.db.write(ctx, "record a warning", func(ctx context.Context, tx *transaction) error {
		if noted, err = findWarning(ctx, tx, c, missed, at); err != nil || noted.Warning.Percent == 0 {
			return err
		}
		w := noted.Warning
		_, err := tx.ExecContext(ctx, "update budget_counter set warned = ? where "+isCounter,
			append([]any{w.Percent}, counterKey(c)...)...)
		if err != nil || w.WarnURL == "" {
			return err
		}
		values := append(append([]any{w.EventID()}, counterKey(c)...), w.Percent, w.Limit, w.Used, w.WarnURL, millis(w.At))
		if _, err := tx.ExecContext(ctx, keepWarning, values...); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "insert into webhook (id, warning, account, due) values (?, ?, ?, ?)",
			w.EventID(), w.EventID(), w.Account, millis(w.At))
		return err
	})
}

// findWarning returns the warning that is due, if any, and the highest recorded percentage.
func findWarning(ctx context.Context, q querier, c budget.Counter, missed int64, at time.Time) (n budget.Noted, err error) {
	w := budget.Warning{State: budget.State{Budget: budget.Budget{ID: c.ID}, Window: c.Window}, At: at}
	err = q.QueryRowContext(ctx, stateOfCounter, counterKey(c)...).Scan(&w.Limit, &w.WarnURL, &w.Used, &n.Percent)
	if errors.Is(err, sql.ErrNoRows) {
		return n, nil
	}
	if w.Percent = budget.Warnable(w.Used, w.Limit, missed); w.Percent > n.Percent {
		n = budget.Noted{Warning: w, Percent: w.Percent}
	}
	return n, err
}

func (b *Budgets) Warning(ctx context.Context, id string) (w budget.Warning, err error) {
	var at int64
	err = b.db.reader.QueryRowContext(ctx, warningByID, id).Scan(&w.Account, &w.Key, &w.Period, &w.Unit, &w.Window,
		&w.Percent, &w.Limit, &w.Used, &w.WarnURL, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return w, fault.New(fault.NotFound, "The warning does not exist.")
	}
	w.At = time.UnixMilli(at).UTC()
	return w, storeError("read a warning", err)
}
