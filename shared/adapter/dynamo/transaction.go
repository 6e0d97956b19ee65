package dynamo

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	// ConflictTries is how often a transaction is tried that conflicts with another on
	// the same items, and conflictWait the longest wait before the second try. The wait
	// doubles up to longestWait. With these, fifty concurrent writers of one item all
	// succeed.
	ConflictTries = 40
	conflictWait  = 10 * time.Millisecond
	longestWait   = 400 * time.Millisecond
)

// Codes of the reasons for which a transaction is cancelled.
const (
	noReason       = "None"
	reasonFailed   = "ConditionalCheckFailed"
	reasonConflict = "TransactionConflict"
)

// throttled reports whether a transaction was cancelled because a partition or a table has
// no capacity left. The SDK knows only throttling of whole calls.
func throttled(err error) bool {
	var cancelled *types.TransactionCanceledException
	return errors.As(err, &cancelled) && slices.ContainsFunc(cancelled.CancellationReasons,
		func(reason types.CancellationReason) bool {
			return code(reason) == "ThrottlingError" || code(reason) == "ProvisionedThroughputExceeded"
		})
}

// transact writes all or nothing. A transaction that conflicts with another is retried;
// nothing of it was written. The SDK adds a token to each call, so that one that it
// repeats after a lost answer is written once.
//
// Errors: refusal if a condition failed.
func transact(ctx context.Context, client *dynamodb.Client, writes []types.TransactWriteItem) error {
	return transactOnce(ctx, client, writes, nil)
}

// transactOnce is transact with a token of the caller: calls with the same token and the
// same writes within ten minutes are written once.
func transactOnce(ctx context.Context, client *dynamodb.Client, writes []types.TransactWriteItem, token *string) error {
	return asRefusal(withoutConflict(ctx, func(ctx context.Context) error {
		_, err := client.TransactWriteItems(ctx,
			&dynamodb.TransactWriteItemsInput{TransactItems: writes, ClientRequestToken: token})
		return err
	}))
}

// transactGet reads items of a table as they are at one time, nil for each that there is not.
func transactGet(ctx context.Context, client *dynamodb.Client, table string, keys []item) (items []item, err error) {
	var gets []types.TransactGetItem
	for _, key := range keys {
		gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: &table, Key: key}})
	}
	err = withoutConflict(ctx, func(ctx context.Context) error {
		got, err := client.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets})
		if err != nil {
			return err
		}
		items = nil
		for _, response := range got.Responses {
			items = append(items, response.Item)
		}
		return nil
	})
	return items, err
}

// withoutConflict makes a transaction, and makes it again if it conflicts with another.
func withoutConflict(ctx context.Context, transaction func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	for try := 1; ; try++ {
		err := transaction(ctx)
		if err == nil || !conflicts(err) || try == ConflictTries {
			return err
		}
		timer := time.NewTimer(rand.N(LongestConflictWait(try)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(ctx.Err(), err)
		case <-timer.C:
		}
	}
}

// LongestConflictWait returns the longest wait after a try of a transaction, of which the first
// is 1, before the next one.
func LongestConflictWait(try int) time.Duration {
	return min(conflictWait<<min(max(try-1, 0), 10), longestWait)
}

// conflicts reports whether a transaction was cancelled only because of a concurrent
// write.
func conflicts(err error) bool {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		var one *types.TransactionConflictException
		return errors.As(err, &one)
	}
	conflict := false
	for _, reason := range cancelled.CancellationReasons {
		switch code(reason) {
		case noReason:
		case reasonConflict:
			conflict = true
		default:
			return false
		}
	}
	return conflict
}

func code(reason types.CancellationReason) string {
	if reason.Code == nil {
		return noReason
	}
	return *reason.Code
}

// refusal is a transaction that was cancelled by conditions.
type refusal struct {
	// failed reports for each write whether its condition was false. items are the items
	// as they were, for the writes that asked for them.
	failed []bool
	items  []item
	err    error
}

// Error describes the refusal for the log.
func (r *refusal) Error() string { return r.err.Error() }

// Unwrap returns the error of the call.
func (r *refusal) Unwrap() error { return r.err }

// asRefusal returns the error of a cancelled transaction as a refusal if at least one
// condition was false.
func asRefusal(err error) error {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return err
	}
	r := &refusal{err: err}
	for _, reason := range cancelled.CancellationReasons {
		r.failed = append(r.failed, code(reason) == reasonFailed)
		r.items = append(r.items, reason.Item)
	}
	if !slices.Contains(r.failed, true) {
		return err
	}
	return r
}

// refused returns the refusal in an error, or nil if there is none.
func refused(err error) *refusal {
	var r *refusal
	errors.As(err, &r)
	return r
}
