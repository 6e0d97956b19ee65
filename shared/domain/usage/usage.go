// Package usage holds what accounts have used, by day and model: requests,
// tokens and seconds of realtime sessions (docs/contract/gateway.md#metering: GET
// /v1/usage). It knows neither HTTP nor a database.
package usage

import (
	"context"
	"time"
)

// Counts is what was used. It is added to, never set.
type Counts struct {
	// Requests are completions, and realtime sessions at their first record.
	Requests int64
	// PromptTokens count what was read, CachedTokens those of them that the
	// upstream had in its cache.
	PromptTokens, CachedTokens int64
	// CompletionTokens count what was generated, ReasoningTokens those of them
	// that were spent on reasoning.
	CompletionTokens, ReasoningTokens int64
	// Estimated counts the requests whose tokens were counted by the gateway,
	// as the upstream did not say.
	Estimated int64
	// SessionSeconds is how long realtime sessions were open.
	SessionSeconds int64
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
}

// Day is a day in UTC, written 2006-01-02.
type Day string

// DayOf returns the day of a time.
func DayOf(t time.Time) Day { return Day(t.UTC().Format(time.DateOnly)) }

// Record is what one call used.
type Record struct {
	// ID is unique to the record, so that one that is added again counts once.
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

// Total is what an account has used of one model on one day.
type Total struct {
	Day   Day
	Model string
	Counts
}

// Store keeps usage. The suite in usagetest specifies it.
type Store interface {
	// Add adds records. After nil all of them survive a crash; after an error
	// any of them may have been added, and adding them again within ten minutes
	// counts none twice.
	Add(ctx context.Context, records []Record) error
	// Totals returns an account's use of the days, the first and the last
	// included, in the order of day and model. What Add has returned is in it.
	Totals(ctx context.Context, account string, first, last Day) ([]Total, error)
}
