package fakeaws

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/awsclient"
)

// Retries follow the SDK's retryer and package dynamo. A throttled call, or a call that conflicts with a transaction,
// gets as many attempts as awsclient allows. A transaction that conflicts with another transaction gets up to 40
// attempts. The real retryers would sleep between attempts while simulated time stands still, so retries are
// simulated here. A retry counts toward the second in which it would really happen, but its writes take effect
// immediately. The clients' retry budgets are not simulated.

// TransactionTime is how long a transaction locks its items. Meanwhile, writes to those items are
// rejected, and so are other transactions on them.
const TransactionTime = 10 * time.Millisecond

// try makes a call and retries it as a client would.
func (d *DynamoDB) try(input any) (answer any, err error, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, turn := d.clock.Now(), d.clock.Turn()
	for tries := 1; ; tries++ {
		answer, err, known = d.attempt(input, at, turn)
		if err == nil || !known {
			return answer, err, known
		}
		wait, most := waitAfter(err, tries)
		if wait == 0 {
			return answer, err, known
		}
		if tries == most {
			if isConflict(err) {
				// Return a fault, because package dynamo would retry this error without letting simulated time pass.
				err = fault.New(fault.Unavailable, "The database is busy. Try again.")
			}
			return nil, err, known
		}
		at = at.Add(d.jitter(wait, at, tries))
	}
}

// waitAfter returns the longest wait before the next attempt (0 means no retry), and the maximum number of attempts.
func waitAfter(err error, tries int) (wait time.Duration, most int) {
	var one *types.TransactionConflictException
	switch {
	case isConflict(err):
		return dynamo.LongestConflictWait(tries), dynamo.ConflictTries
	case errors.As(err, &one), awsclient.IsThrottle(err):
		return awsclient.LongestWait(tries), awsclient.Attempts
	}
	return 0, 0
}

// isConflict reports whether a transaction was cancelled only because it conflicted with another transaction.
func isConflict(err error) bool {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return false
	}
	conflict := false
	for _, reason := range cancelled.CancellationReasons {
		switch aws.ToString(reason.Code) {
		case "None":
		case "TransactionConflict":
			conflict = true
		default:
			return false
		}
	}
	return conflict
}

// jitter returns a wait up to the given maximum. It depends on the rejected call and the time. It does not depend on
// the order of calls, because the order of concurrent calls is random.
func (d *DynamoDB) jitter(longest time.Duration, at time.Time, tries int) time.Duration {
	h := fnv.New64a()
	var number [16]byte
	binary.LittleEndian.PutUint64(number[:], uint64(at.UnixNano()))
	binary.LittleEndian.PutUint64(number[8:], uint64(tries))
	_, _ = h.Write(number[:]) // never fails
	_, _ = h.Write([]byte(d.rejected))
	return time.Duration(h.Sum64() % uint64(longest))
}

type itemKey struct{ table, hash, sort string }

type hold struct {
	from, until time.Time
	turn        int64
}

type locks map[itemKey][]hold

// meets reports whether another caller's transaction locks the item at any time in the given period.
func (l locks) meets(key itemKey, from, until time.Time, turn int64) bool {
	for _, h := range l[key] {
		if h.turn != turn && from.Before(h.until) && !until.Before(h.from) {
			return true
		}
	}
	return false
}

// hold makes a transaction lock an item. The lock begins after the same caller's earlier locks.
func (l locks) hold(key itemKey, at time.Time, turn int64) {
	for _, h := range l[key] {
		if h.turn == turn && h.until.After(at) {
			at = h.until
		}
	}
	l[key] = append(l[key], hold{at, at.Add(TransactionTime), turn})
}

func (l locks) forget(now time.Time) {
	for key, holds := range l {
		kept := holds[:0]
		for _, h := range holds {
			if h.until.After(now) {
				kept = append(kept, h)
			}
		}
		if len(kept) == 0 {
			delete(l, key)
		} else {
			l[key] = kept
		}
	}
}
