// Package audit is the log of what administrators change: keys and budgets
// (docs/contract/auth.md#the-audit-log). It knows neither HTTP nor a database.
//
// An entry is written by the store that makes the change, in the same transaction, so
// that there is neither without the other. Nothing changes an entry or deletes it before
// its time.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Kept is how long entries are kept at least.
const Kept = 400 * 24 * time.Hour

// operator stands for whoever has the command line of the service.
const operator = "operator"

// Origin is who makes a change, and when.
type Origin struct {
	// By is the id of an admin key, or "operator".
	By string
	At time.Time
	// RequestID is that of the call, empty for the operator.
	RequestID string
}

// Operator returns the origin of a change by the command line.
func Operator(at time.Time) Origin { return Origin{By: operator, At: at} }

// IsOperator reports whether the change is made by the command line.
func (o Origin) IsOperator() bool { return o.By == operator }

// Action is what was done.
type Action string

// The actions.
const (
	KeyCreated    Action = "key.created"
	KeyRevoked    Action = "key.revoked"
	BudgetSet     Action = "budget.set"
	BudgetDeleted Action = "budget.deleted"
)

// Entry is one change.
type Entry struct {
	// ID is unique within the account. Ids are in the order of their times.
	ID      string
	Account string
	Origin
	Action Action
	// Subject names what was changed, such as the id of a key.
	Subject string
	// Before and After are what was changed as it was and as it is, as JSON without any
	// secret; nil where there was or is nothing.
	Before, After json.RawMessage
}

// New returns the entry of a change. A nil before means that nothing was there, a nil
// after that nothing is left.
func New(from Origin, account string, action Action, subject string, before, after any) (Entry, error) {
	from.At = from.At.UTC().Truncate(time.Millisecond)
	e := Entry{Account: account, Origin: from, Action: action, Subject: subject}
	for _, state := range []struct {
		of   any
		into *json.RawMessage
	}{{before, &e.Before}, {after, &e.After}} {
		if state.of == nil {
			continue
		}
		text, err := json.Marshal(state.of)
		if err != nil {
			return Entry{}, fmt.Errorf("audit: %w", err)
		}
		*state.into = text
	}
	// A repetition of the same write has the same id.
	sum := sha256.Sum256([]byte(strings.Join([]string{
		account, from.By, from.RequestID, string(action), subject, string(e.Before), string(e.After),
	}, "\x00")))
	e.ID = firstID(from.At) + "-" + hex.EncodeToString(sum[:8])
	return e, nil
}

const (
	idPrefix = "aud_"
	// idDigits is the length of the time in an id, in hex.
	idDigits = 12
)

// firstID returns the lower bound of the ids of entries from a time on.
func firstID(at time.Time) string {
	return fmt.Sprintf("%s%0*x", idPrefix, idDigits, max(at.UnixMilli(), 0))
}

// IsID reports whether a text has the form of an entry's id.
func IsID(text string) bool {
	rest, found := strings.CutPrefix(text, idPrefix)
	at, sum, parted := strings.Cut(rest, "-")
	_, wrong := hex.DecodeString(at + sum)
	return found && parted && wrong == nil && len(at) == idDigits && len(sum) == 16
}

// Query selects entries of an account.
type Query struct {
	// From and To bound the times of entries, To excluded; zero sets no bound.
	From, To time.Time
	// Before is the id of an entry; only older ones are returned. Empty begins with the
	// newest.
	Before string
	// Limit is how many entries are returned at most.
	Limit int
}

// Range returns the bounds of the ids that the query selects, the upper one excluded.
func (q Query) Range() (low, high string) {
	// Every id sorts between these.
	low, high = idPrefix, idPrefix+"g"
	if !q.From.IsZero() {
		low = firstID(q.From)
	}
	if !q.To.IsZero() {
		high = firstID(q.To)
	}
	if q.Before != "" {
		high = min(high, q.Before)
	}
	return low, high
}

// Log reads entries. The suite in credentialtest specifies it.
type Log interface {
	// Entries returns entries of an account, newest first.
	Entries(ctx context.Context, account string, query Query) ([]Entry, error)
}
