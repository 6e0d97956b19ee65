// Package budget keeps what accounts and keys may use up in a day or a month
// (docs/contract/budgets.md). It knows neither HTTP nor a database; [Store] declares
// what it needs of one.
//
// A budget has a counter for each of its windows. A counter is one number, Used: what
// was settled and what is reserved. Nothing is taken from a counter that would move it
// beyond the limit, so the sum of both never exceeds it, under any concurrency.
//
// There are two ways to take from a counter. A job takes a [Hold] in the transaction
// that accepts it, and settles it in the one that ends it. A process that serves many
// short calls takes a [Lease] of a small share and lets calls draw from that in its own
// memory (see Keeper).
package budget

import (
	"context"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/fault"
)

// Unit is what a budget counts.
type Unit string

// The units.
const (
	// Cost is in billionths of the catalog's currency.
	Cost Unit = "cost"
	// Tokens are those of prompts and of completions.
	Tokens Unit = "tokens"
	// Jobs are video jobs and image edits.
	Jobs Unit = "jobs"
	// SessionSeconds is how long realtime sessions are open.
	SessionSeconds Unit = "session_seconds"
)

// Valid reports whether there is such a unit.
func (u Unit) Valid() bool { return u == Cost || u == Tokens || u == Jobs || u == SessionSeconds }

// MaxLimit bounds the limit of a budget, in its unit. Sums of two do not overflow.
const MaxLimit = 1e18

// ID names a budget: an account has at most one of each.
type ID struct {
	Account string `json:"account"`
	// Key is the id of a permanent key, whose client tokens count as well; empty means
	// the whole account.
	Key    string `json:"key,omitempty"`
	Period Period `json:"period"`
	Unit   Unit   `json:"unit"`
}

// Budget is what may be used up of a unit in each window of a period.
type Budget struct {
	ID
	// Limit is in the unit, at most MaxLimit.
	Limit int64
	// WarnURL is told of warnings, as the webhook of a job is told of its end; empty for
	// nobody.
	WarnURL string
}

// AppliesTo reports whether calls of a key count against the budget.
func (b Budget) AppliesTo(key string) bool { return b.Key == "" || b.Key == key }

// Counter returns the counter of the window that a time is in.
func (b Budget) Counter(at time.Time) Counter { return Counter{b.ID, b.Period.WindowOf(at)} }

// Counter names what counts one window of a budget. It goes on counting when the limit
// changes, and when the budget is deleted and set again within the window.
type Counter struct {
	ID
	Window Window `json:"window"`
}

// Amounts is how much something uses of each unit.
type Amounts struct {
	// Cost is in billionths of the catalog's currency.
	Cost, Tokens, Jobs, SessionSeconds int64
}

// Of returns the amount of a unit.
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

// Claim is an amount that is to be taken from a counter.
type Claim struct {
	Counter
	// Limit is that of the counter's budget.
	Limit, Amount int64
}

// Hold is an amount that was taken from a counter for one job. The record of the job
// keeps it until the job ends. A store may count it apart from others; the window of the
// counter then has a name of the store's own.
type Hold struct {
	Counter
	Amount int64 `json:"amount"`
}

// Settlement is how a hold ends: Used of it stays on the counter, and the rest returns
// to it. More than the hold is counted as the hold.
type Settlement struct {
	Hold
	Used int64
}

// Returned is what goes back to the counter.
func (s Settlement) Returned() int64 { return s.Amount - min(max(s.Used, 0), s.Amount) }

// Settle returns how holds end, given what was used of each unit.
func Settle(holds []Hold, used Amounts) []Settlement {
	settled := make([]Settlement, len(holds))
	for i, h := range holds {
		settled[i] = Settlement{h, used.Of(h.Unit)}
	}
	return settled
}

// Claims returns what has to be taken from the counters of the budgets that apply to a
// key, at a time. Budgets whose unit is not used are left out.
func Claims(budgets []Budget, key string, amounts Amounts, at time.Time) []Claim {
	var claims []Claim
	for _, b := range budgets {
		if n := amounts.Of(b.Unit); n > 0 && b.AppliesTo(key) {
			claims = append(claims, Claim{b.Counter(at), b.Limit, min(n, MaxLimit)})
		}
	}
	return claims
}

// UsedUp returns the error for a call that a budget has too little left for
// (docs/contract/budgets.md#over-a-budget).
func UsedUp(c Counter, now time.Time) *fault.Error {
	scope := "account"
	if c.Key != "" {
		scope = "key"
	}
	ends := c.Window.Ends()
	e := fault.New(fault.Exhausted, "The %s's budget of %s for %s has too little left for this call. The next one begins at %s.",
		scope, c.Unit, c.Window, ends.Format(time.RFC3339))
	e.RetryAfter = max(ends.Sub(now), time.Second)
	return e
}

// Budgets keeps budgets and tells what was used of them.
type Budgets interface {
	// Budgets returns the budgets of an account and of its keys, in the order of key,
	// period and unit. It includes every Set that has returned.
	Budgets(ctx context.Context, account string) ([]Budget, error)
	// Set creates a budget, or replaces the one of its ID, with the entry in the audit
	// log: both or neither. One that is as it was leaves no entry.
	Set(ctx context.Context, from audit.Origin, b Budget) error
	// Delete deletes a budget, with the entry in the audit log. Its counters stay.
	//
	// Errors: fault.NotFound.
	Delete(ctx context.Context, from audit.Origin, id ID) error
	// Used returns what was settled and is reserved on counters, in their order, after
	// ending their leases that are over.
	Used(ctx context.Context, counters []Counter) ([]int64, error)
}

// Store keeps budgets, their counters and the leases of processes. The suite in
// budgettest specifies it. Holds of jobs are taken and settled by the stores of jobs.
type Store interface {
	Budgets
	Leases
	Warnings
}
