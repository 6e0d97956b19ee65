// Package audit logs the changes that administrators make to keys and budgets
// (docs/contract/auth.md#the-audit-log). It imports neither HTTP nor a database.
//
// The store that makes a change writes the log entry in the same transaction, so that neither
// exists without the other. No program changes an entry or deletes it early.
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

// Kept is the minimum time for which entries are kept.
const Kept = 400 * 24 * time.Hour

const operator = "operator"

type Origin struct {
	// By is the id of the admin key that made the change, or "operator".
	By string
	At time.Time
	// RequestID is the id of the request, or empty for the operator.
	RequestID string
}

func Operator(at time.Time) Origin { return Origin{By: operator, At: at} }
func (o Origin) IsOperator() bool  { return o.By == operator }

type Action string

const (
	KeyCreated    Action = "key.created"
	KeyRevoked    Action = "key.revoked"
	BudgetSet     Action = "budget.set"
	BudgetDeleted Action = "budget.deleted"
)

type Entry struct {
	// ID is unique within the account. Ids sort by time.
	ID      string
	Account string
	Origin
	Action  Action
	Subject string
	// Before and After hold the object as JSON, without secrets. Before is empty for a new object, and After is empty
	// for a deleted object.
	Before, After json.RawMessage
}

// New returns the entry for a change. before is nil for a new object, and after is nil for a deleted object.
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
	// If the same write is retried, the entry has the same id.
	sum := sha256.Sum256([]byte(strings.Join([]string{
		account, from.By, from.RequestID, string(action), subject, string(e.Before), string(e.After),
	}, "\x00")))
	e.ID = firstID(from.At) + "-" + hex.EncodeToString(sum[:8])
	return e, nil
}

const (
	idPrefix = "aud_"
	idDigits = 12
)

// firstID returns the lowest possible id of an entry made at or after the given time.
func firstID(at time.Time) string {
	return fmt.Sprintf("%s%0*x", idPrefix, idDigits, max(at.UnixMilli(), 0))
}

func IsID(text string) bool {
	rest, found := strings.CutPrefix(text, idPrefix)
	at, sum, parted := strings.Cut(rest, "-")
	_, wrong := hex.DecodeString(at + sum)
	return found && parted && wrong == nil && len(at) == idDigits && len(sum) == 16
}

type Query struct {
	// From (inclusive) and To (exclusive) limit the result to a time range. Zero means no limit.
	From, To time.Time
	// Before limits the result to entries older than the entry with this id. "" means no limit.
	Before string
	Limit  int
}

// Range returns the range of ids that the query selects. high is exclusive.
func (q Query) Range() (low, high string) {
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
	Entries(ctx context.Context, account string, query Query) ([]Entry, error)
}
