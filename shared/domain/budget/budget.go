// Package budget limits the usage of accounts and keys per day or month (docs/contract/budgets.md).
// It imports neither HTTP nor a database. [Store] declares the methods that it needs.
//
// A budget has a counter for each of its windows. A counter is a single number, Used: the sum of settled and
// reserved amounts. No write raises it above the limit, so concurrent calls cannot exceed the limit.
//
// There are two ways to take from a counter. A job takes a [Hold] in the transaction that accepts
// the job, and settles it in the transaction that ends the job. A process that serves many short
// calls takes a small [Allocation] and serves calls from it in memory (see Manager).
package budget

import (
	"context"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/fault"
)

type Unit string

const (
	// Cost is in billionths of the catalog's currency.
	Cost Unit = "cost"
	// Tokens counts prompt and completion tokens.
	Tokens Unit = "tokens"
	// Jobs counts video jobs and image edits.
	Jobs Unit = "jobs"
	// SessionSeconds counts the seconds during which realtime sessions are open.
	SessionSeconds Unit = "session_seconds"
)

func (u Unit) Valid() bool { return u == Cost || u == Tokens || u == Jobs || u == SessionSeconds }

// MaxLimit is the largest allowed limit. The sum of two limits does not overflow.
const MaxLimit = 1e18

// ID identifies a budget. An account has at most one budget per ID.
type ID struct {
	Account string `json:"account"`
	// Key is the id of a permanent key. Usage by its client tokens is included. Empty means the entire account.
	Key    string `json:"key,omitempty"`
	Period Period `json:"period"`
	Unit   Unit   `json:"unit"`
}

// Budget limits the usage of one unit in each window of a period.
type Budget struct {
	ID
	Limit int64
	// WarnURL receives warnings in the same way as a job's webhook. Empty means that no warnings are sent.
	WarnURL string
}

func (b Budget) AppliesTo(key string) bool    { return b.Key == "" || b.Key == key }
func (b Budget) Counter(at time.Time) Counter { return Counter{b.ID, b.Period.WindowOf(at)} }

// Counter identifies the counter of one window of a budget. The counter is kept if the limit
// changes, or if the budget is deleted and set again within the window.
type Counter struct {
	ID
	Window Window `json:"window"`
}

type Amounts struct {
	Cost, Tokens, Jobs, SessionSeconds int64 // Cost is in billionths of the catalog's currency
}

func (a Amounts) Of(unit Unit) int64 {
	switch unit {
	case Cost:
		return a.Cost
	case Tokens:
		return a.Tokens
	case Jobs:
		return a.Jobs
	case SessionSeconds:
		return a.SessionSeconds
	}
	return 0
}

type Claim struct {
	Counter
	Limit, Amount int64
}

// Hold is an amount that one job has taken from a counter. It is kept in the job's record until the job ends. A
// store may count it on a separate counter. In that case Counter.Window is a store-specific name.
type Hold struct {
	Counter
	Amount int64 `json:"amount"`
}

// Settlement ends a hold. Used stays on the counter, up to the amount of the hold. The rest is returned.
type Settlement struct {
	Hold
	Used int64
}

func (s Settlement) Returned() int64 { return s.Amount - min(max(s.Used, 0), s.Amount) }

func Settle(holds []Hold, used Amounts) []Settlement {
	settled := make([]Settlement, len(holds))
	for i, h := range holds {
		settled[i] = Settlement{h, used.Of(h.Unit)}
	}
	return settled
}

// Claims returns the claims on the budgets that apply to a key, except for budgets whose unit the call does not use.
func Claims(budgets []Budget, key string, amounts Amounts, at time.Time) []Claim {
	var claims []Claim
	for _, b := range budgets {
		if n := amounts.Of(b.Unit); n > 0 && b.AppliesTo(key) {
			claims = append(claims, Claim{b.Counter(at), b.Limit, min(n, MaxLimit)})
		}
	}
	return claims
}

// UsedUp returns the error for a call that would exceed a budget (docs/contract/budgets.md#over-a-budget).
func UsedUp(c Counter, now time.Time) *fault.Error {
	scope := "account"
	if c.Key != "" {
		scope = "key"
	}
	ends := c.Window.Ends()
	e := fault.New(fault.Exhausted, "The remaining %s budget of %s for %s is too small for this call. The next period begins at %s.",
		scope, c.Unit, c.Window, ends.Format(time.RFC3339))
	e.RetryAfter = max(ends.Sub(now), time.Second)
	return e
}

type Budgets interface {
	// Budgets returns the budgets of an account and its keys, sorted by key, period and unit. The
	// result reflects every Set that has returned.
	Budgets(ctx context.Context, account string) ([]Budget, error)
	// Set creates a budget, or replaces the budget with the same ID, and adds the audit entry. If
	// nothing changes, it adds no entry.
	Set(ctx context.Context, from audit.Origin, b Budget) error
	// Delete deletes a budget and adds the audit entry. It keeps the counters.
	//
	// Errors: fault.NotFound.
	Delete(ctx context.Context, from audit.Origin, id ID) error
	// Used returns the settled and reserved amounts of the counters, in the same order. It first
	// ends the counters' expired allocations.
	Used(ctx context.Context, counters []Counter) ([]int64, error)
}

// Store stores budgets, their counters, and the processes' allocations. The suite in budgettest
// specifies it. The job stores take and settle the holds.
type Store interface {
	Budgets
	Allocations
	Warnings
}
