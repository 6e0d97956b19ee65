package move

import (
	"context"
	"iter"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/domain/webhook"
)

// State is how far a move is.
type State string

// The states, in their order.
const (
	// None means that nothing was written.
	None State = ""
	// Begun means that records are being copied, which nobody can reach yet.
	Begun State = "begun"
	// Open means that keys and jobs are being made.
	Open State = "open"
	Done State = "done"
)

// Target is a deploy. Its methods that put something do nothing if the very same is there
// already. Those that are told the source mark what they write with it, and replace what
// has that mark as long as the ledger is Begun. Anything else that differs is left as it is,
// and they fail with ErrDiffers.
type Target interface {
	// Ledger returns the state of the move from a source. SetLedger changes it, and fails with
	// ErrDiffers if it is to be Begun and is further.
	Ledger(ctx context.Context, source string) (State, error)
	SetLedger(ctx context.Context, source string, state State) error
	// Holds says what a deploy holds of an account without the mark of the source, such as
	// "files"; "" for nothing.
	Holds(ctx context.Context, source, account string) (string, error)
	// Written returns the records of an account with the mark of the source, but for
	// counters: those that a source has no longer are of windows that are over, and go by
	// themselves.
	Written(ctx context.Context, source, account string) iter.Seq2[Record, error]
	// Remove removes a record with the mark of the source as long as the ledger is Begun.
	Remove(ctx context.Context, source string, r Record) error
	PutFile(ctx context.Context, source string, f file.File) error
	PutUsage(ctx context.Context, source string, u Usage) error
	PutBudget(ctx context.Context, source string, b budget.Budget) error
	PutCounter(ctx context.Context, source string, c Counter) error
	// PutJob records a job that has ended, with the attempts of its webhook.
	PutJob(ctx context.Context, source string, j job.Job, attempts []webhook.Attempt) error
	PutKey(ctx context.Context, key credential.Key) error
	// Accept accepts a job that has not ended, to be run from its beginning, once.
	Accept(ctx context.Context, j job.Job) error
	// HasFile, HasUsage and HasJob fail with ErrDiffers unless what was put is there.
	HasFile(ctx context.Context, f file.File) error
	HasUsage(ctx context.Context, u Usage) error
	HasJob(ctx context.Context, j job.Job) error
}

// Record names a record. Those that are equal are the same one.
type Record struct {
	Kind    Kind
	Account string
	// ID is that of a file or a job.
	ID string
	// Usage is what usage is told by, and Budget a budget.
	Usage  UsageID
	Budget budget.ID
}

// Kind is the kind of a record.
type Kind string

// The kinds.
const (
	AFile   Kind = "file"
	SomeUse Kind = "usage"
	ABudget Kind = "budget"
	AJob    Kind = "job"
)

// UsageID tells what a key has used of a model on a day from other usage of the account.
type UsageID struct {
	Day        usage.Day
	Model, Key string
}

// FileRecord names a file, UsageRecord usage, BudgetRecord a budget and JobRecord a job.
func FileRecord(f file.File) Record { return Record{Kind: AFile, Account: f.Account, ID: f.ID} }
func UsageRecord(u Usage) Record {
	return Record{Kind: SomeUse, Account: u.Account, Usage: UsageID{u.Day, u.Model, u.Key}}
}
func BudgetRecord(b budget.ID) Record { return Record{Kind: ABudget, Account: b.Account, Budget: b} }
func JobRecord(j job.Job) Record      { return Record{Kind: AJob, Account: j.Account, ID: j.ID} }
