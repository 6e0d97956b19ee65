// Package usage counts the use of accounts, by day and model: requests, tokens and seconds of realtime
// sessions (docs/contract/gateway.md#metering: GET /v1/usage). It imports neither HTTP nor a database.
package usage

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Counts only increase.
type Counts struct {
	// Requests counts completions, and realtime sessions at their first record.
	Requests int64
	// PromptTokens counts prompt tokens. CachedTokens is the part of them from the upstream's cache.
	PromptTokens, CachedTokens int64
	// CompletionTokens counts generated tokens. ReasoningTokens is the part of them spent on reasoning.
	CompletionTokens, ReasoningTokens int64
	// Estimated counts requests whose tokens the gateway counted because the upstream did not report them.
	Estimated      int64
	SessionSeconds int64
	// Jobs counts accepted jobs, JobsCompleted jobs with a result.
	Jobs, JobsCompleted int64
	// Cost is the total cost in billionths of the catalog's currency, as far as prices were set
	// (docs/contract/gateway.md#costs).
	Cost int64
	// BatchRequests counts requests of batches. BatchCost is their part of the cost.
	BatchRequests, BatchCost int64
}

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

// MaxCost limits the cost of one Counts, in billionths of the currency: a billion. Sums do not overflow.
const MaxCost = 1e18

// Amount formats a cost in billionths as a decimal such as 0.00012.
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

func DayOf(t time.Time) Day { return Day(t.UTC().Format(time.DateOnly)) }

type Record struct {
	// ID is unique, so that a record added twice counts once.
	ID      string
	Account string
	// Key is the id of the call's permanent key.
	Key string
	// Model is the canonical id of a media model, or the slug of an inference model.
	Model string
	Day   Day
	Counts
}

// Total is the use of one model by one key on one day.
type Total struct {
	Day   Day
	Model string
	// Key is the id of the permanent key. It is empty for old records without a key.
	Key string
	Counts
}

// Store keeps usage. The suite in usagetest specifies it.
type Store interface {
	// Add adds records. After success all of them survive a crash. After an error any of them may
	// have been added; adding them again within ten minutes counts none twice.
	Add(ctx context.Context, records []Record) error
	// Totals returns an account's use from the first to the last day, both included, in the order
	// of day, model and key. It includes everything that Add has added.
	Totals(ctx context.Context, account string, first, last Day) ([]Total, error)
}
