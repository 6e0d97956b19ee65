package sqlite

import (
	"context"
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
	addCounts  = `insert into usage (account, day, model, key,
		requests, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens, estimated, session_seconds, jobs,
		jobs_completed, cost, batch_requests, batch_cost, audio_seconds, characters)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	on conflict (account, day, model, key) do update set
		requests = requests + excluded.requests,
		prompt_tokens = prompt_tokens + excluded.prompt_tokens,
		cached_tokens = cached_tokens + excluded.cached_tokens,
		completion_tokens = completion_tokens + excluded.completion_tokens,
		reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
		estimated = estimated + excluded.estimated,
		session_seconds = session_seconds + excluded.session_seconds,
		jobs = jobs + excluded.jobs,
		jobs_completed = jobs_completed + excluded.jobs_completed,
		cost = min(cost + excluded.cost, 1000000000000000000),
		batch_requests = batch_requests + excluded.batch_requests,
		batch_cost = min(batch_cost + excluded.batch_cost, 1000000000000000000),
		audio_seconds = audio_seconds + excluded.audio_seconds,
		characters = characters + excluded.characters`
)

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
	return []any{
		r.Account, r.Day, r.Model, r.Key, r.Requests, r.PromptTokens, r.CachedTokens, r.CompletionTokens, r.ReasoningTokens,
		r.Estimated, r.SessionSeconds, r.Jobs, r.JobsCompleted, r.Cost,
		r.BatchRequests, r.BatchCost, r.AudioSeconds, r.Characters,
	}
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
		if err := r.Scan(&t.Day, &t.Model, &t.Key, &t.Requests, &t.PromptTokens, &t.CachedTokens,
			&t.CompletionTokens, &t.ReasoningTokens, &t.Estimated, &t.SessionSeconds, &t.Jobs,
			&t.JobsCompleted, &t.Cost, &t.BatchRequests, &t.BatchCost, &t.AudioSeconds, &t.Characters); err != nil {
			return err
		}
		return sums.Add(t, by)
	}, `select day, model, key, requests, prompt_tokens, cached_tokens, completion_tokens,
			reasoning_tokens, estimated, session_seconds, jobs, jobs_completed, cost, batch_requests, batch_cost,
			audio_seconds, characters
		from usage where account = ? and day between ? and ?`, account, first, last)
	if err != nil {
		return nil, storeError("read usage", err)
	}
	return sums.Totals(), nil
}
