// Package usage holds what accounts have used, by day and model: requests,
// tokens and seconds of realtime sessions (docs/contract/gateway.md#metering:
// GET /v1/usage). It knows neither HTTP nor a database.
package usage

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Counts is what was used. It is only ever added to.
type Counts struct {
	// Requests counts completions, and realtime sessions at their first record.
	Requests int64
	// PromptTokens counts what was read, CachedTokens those of them that the
	// upstream had cached.
	PromptTokens, CachedTokens int64
	// CompletionTokens counts what was generated, ReasoningTokens those of them
	// that were spent on reasoning.
	CompletionTokens, ReasoningTokens int64
	// Estimated counts the requests whose tokens the gateway counted, because
	// the upstream did not report them.
	Estimated int64
	// SessionSeconds is how long realtime sessions were open, in seconds.
	SessionSeconds int64
	// Jobs counts the jobs that were accepted, however they ended, and JobsCompleted
	// those that ended with a result.
	Jobs, JobsCompleted int64
	// Cost is what all of it cost, in billionths of the catalog's currency, as far as
	// there were prices (docs/contract/gateway.md#costs).
	Cost int64
	// BatchRequests counts the requests that were calls of batches, and BatchCost is the
	// part of the cost that was theirs.
	BatchRequests, BatchCost int64
}

// Add adds to the counts.
func (c *Counts) Add(more Counts) {
	c.Requests += more.Requests
	c.PromptTokens += more.PromptTokens
	c.CachedTokens += more.CachedTokens
	c.CompletionTokens += more.CompletionTokens
	c.ReasoningTokens += more.ReasoningTokens
	c.Estimated += more.Estimated
	c.SessionSeconds += more.SessionSeconds
	c.Jobs += more.Jobs
	c.JobsCompleted += more.JobsCompleted
	c.Cost = min(c.Cost+more.Cost, MaxCost)
	c.BatchRequests += more.BatchRequests
	c.BatchCost = min(c.BatchCost+more.BatchCost, MaxCost)
}

// MaxCost bounds the cost of one Counts, in billionths of the currency: a billion. Sums
// of it do not overflow.
const MaxCost = 1e18

// Amount writes a cost, which is in billionths, as a decimal such as 0.00012.
func Amount(billionths int64) string {
	whole := strconv.FormatInt(billionths/1e9, 10)
	fraction := strings.TrimRight(strconv.FormatInt(1e9+billionths%1e9, 10)[1:], "0")
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// Day is a day in UTC, written 2006-01-02.
type Day string

// DayOf returns the day of a time.
func DayOf(t time.Time) Day { return Day(t.UTC().Format(time.DateOnly)) }

// Record is what one call used.
type Record struct {
	// ID is unique to the record, so that a record added twice counts once.
	ID      string
	Account string
	// Key is the id of the permanent key behind the call.
	Key string
	// Model is the canonical id of a media model, or the slug of an inference
	// model.
	Model string
	Day   Day
	Counts
}

// Total is what a key of an account has used of one model on one day.
type Total struct {
	Day   Day
	Model string
	// Key is the id of the permanent key, empty for what was used before keys were
	// kept.
	Key string
	Counts
}

// Store keeps usage. The suite in usagetest specifies it.
type Store interface {
	// Add adds records. If it succeeds, all of them survive a crash. If it
	// fails, any of them may have been added; adding them again within ten
	// minutes counts none twice.
	Add(ctx context.Context, records []Record) error
	// Totals returns what an account used from the first day to the last, both
	// included, in the order of day, model and key. It includes everything that Add
	// has added.
	Totals(ctx context.Context, account string, first, last Day) ([]Total, error)
}
