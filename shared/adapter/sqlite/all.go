package sqlite

import (
	"context"
	"iter"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/service/move"
)

// All reads all records of all accounts, to move them elsewhere.
type All struct{ db *DB }

var _ move.Records = (*All)(nil)

// All returns what reads all records.
func (db *DB) All() *All { return &All{db} }

// ID returns the id that the database got when it was made.
func (a *All) ID(ctx context.Context) (string, error) {
	mark, err := a.db.Mark(ctx)
	return mark.Database, err
}

// rows reads the rows of a query one by one.
func rows[V any](ctx context.Context, db *DB, what, query string, scan func(row) (V, error)) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		var none V
		found, err := db.reader.QueryContext(ctx, query)
		if err != nil {
			yield(none, storeError(what, err))
			return
		}
		defer found.Close()
		for found.Next() {
			one, err := scan(found)
			if !yield(one, storeError(what, err)) || err != nil {
				return
			}
		}
		if err := found.Err(); err != nil {
			yield(none, storeError(what, err))
		}
	}
}

// Keys returns all keys.
func (a *All) Keys(ctx context.Context) iter.Seq2[credential.Key, error] {
	return rows(ctx, a.db, "read keys", "select "+keyColumns+" from api_key order by id", scanKey)
}

// Files returns all files that are stored.
func (a *All) Files(ctx context.Context) iter.Seq2[file.File, error] {
	return rows(ctx, a.db, "read files", "select "+fileColumns+" from file where state = 'stored' order by id", scanFile)
}

// Jobs returns all jobs.
func (a *All) Jobs(ctx context.Context) iter.Seq2[job.Job, error] {
	return rows(ctx, a.db, "read jobs", selectJob+"order by job.id", scanJob)
}

// Budgets returns all budgets.
func (a *All) Budgets(ctx context.Context) iter.Seq2[budget.Budget, error] {
	return rows(ctx, a.db, "read budgets", "select account, key, period, unit, max_used, warn_url from budget",
		func(r row) (b budget.Budget, err error) {
			return b, r.Scan(&b.Account, &b.Key, &b.Period, &b.Unit, &b.Limit, &b.WarnURL)
		})
}

// Counters returns what was used and is reserved of all budgets.
func (a *All) Counters(ctx context.Context) iter.Seq2[move.Counter, error] {
	return rows(ctx, a.db, "read counters", "select account, key, period, unit, term, used, warned from budget_counter",
		func(r row) (c move.Counter, err error) {
			return c, r.Scan(&c.Account, &c.Key, &c.Period, &c.Unit, &c.Window, &c.Used, &c.Warned)
		})
}

// Usage returns what all accounts have used.
func (a *All) Usage(ctx context.Context) iter.Seq2[move.Usage, error] {
	return rows(ctx, a.db, "read usage", `select account, day, model, key, requests, prompt_tokens, cached_tokens,
		completion_tokens, reasoning_tokens, estimated, session_seconds, jobs, jobs_completed, cost, batch_requests, batch_cost
		from usage`,
		func(r row) (u move.Usage, err error) {
			return u, r.Scan(&u.Account, &u.Day, &u.Model, &u.Key, &u.Requests, &u.PromptTokens, &u.CachedTokens,
				&u.CompletionTokens, &u.ReasoningTokens, &u.Estimated, &u.SessionSeconds, &u.Jobs, &u.JobsCompleted, &u.Cost,
				&u.BatchRequests, &u.BatchCost)
		})
}

// Attempts returns the attempts at the webhook of a job.
func (a *All) Attempts(ctx context.Context, jobID string) ([]webhook.Attempt, error) {
	return a.db.Webhooks().Attempts(ctx, jobID)
}
