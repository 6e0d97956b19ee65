package sqlite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cutroom/shared/domain/usage"
)

type Usage struct{ db *DB }

var _ usage.Store = (*Usage)(nil)

func (db *DB) Usage() *Usage { return &Usage{db} }

const (
	// recordAge is how long a repeated Add is recognized.
	recordAge = 15 * time.Minute
	// A call deletes up to sweptRecords more old records than it adds, so that their number falls after a burst.
	sweptRecords = 100

	knowRecord = "insert into usage_record (id, added_at) values (?, ?) on conflict do nothing"
)

var addCounts, readCounts = usageStatements()

func usageStatements() (add, read string) {
	var names, sums []string
	for _, one := range new(usage.Counts).All() {
		sum := one.Name + " + excluded." + one.Name
		if strings.HasSuffix(one.Name, "cost") {
			sum = fmt.Sprintf("min(%s, %d)", sum, int64(usage.MaxCost))
		}
		names, sums = append(names, one.Name), append(sums, one.Name+" = "+sum)
	}
	columns := strings.Join(names, ", ")
	return "insert into usage (account, day, model, key, " + columns + ") values (?, ?, ?, ?" +
			strings.Repeat(", ?", len(names)) + ") on conflict (account, day, model, key) do update set " + strings.Join(sums, ", "),
		"select day, model, key, " + columns + " from usage where account = ? and day between ? and ?"
}

func (u *Usage) Add(ctx context.Context, records []usage.Record) error {
	if len(records) == 0 {
		return nil
	}
	return u.db.write(ctx, "add usage", func(ctx context.Context, tx *transaction) error {
		now := u.db.now()
		if err := addUsage(ctx, tx, records, now); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `delete from usage_record where id in
			(select id from usage_record where added_at < ? order by added_at limit ?)`,
			millis(now.Add(-recordAge)), len(records)+sweptRecords)
		return err
	})
}

func addUsage(ctx context.Context, tx *transaction, records []usage.Record, now time.Time) error {
	for _, r := range records {
		known, err := tx.ExecContext(ctx, knowRecord, r.ID, millis(now))
		if err != nil {
			return err
		}
		if n, err := known.RowsAffected(); err != nil {
			return err
		} else if n == 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, addCounts, countsOf(r)...); err != nil {
			return err
		}
	}
	return nil
}

func countsOf(r usage.Record) []any {
	values := []any{r.Account, r.Day, r.Model, r.Key}
	for _, one := range r.All() {
		values = append(values, *one.Value)
	}
	return values
}

func (u *Usage) Totals(
	ctx context.Context, account string, first, last usage.Day, by usage.Columns,
) ([]usage.Total, error) {
	tx, end, err := u.db.beginList(ctx, account)
	if err != nil {
		return nil, storeError("read usage", err)
	}
	defer end()
	sums := usage.Sums{}
	err = eachRow(ctx, tx, func(r row) error {
		var t usage.Total
		into := []any{&t.Day, &t.Model, &t.Key}
		for _, one := range t.All() {
			into = append(into, one.Value)
		}
		if err := r.Scan(into...); err != nil {
			return err
		}
		return sums.Add(t, by)
	}, readCounts, account, first, last)
	if err != nil {
		return nil, storeError("read usage", err)
	}
	return sums.Totals(), nil
}
