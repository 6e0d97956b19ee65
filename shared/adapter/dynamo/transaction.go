package dynamo

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/platform/clock"
)

const (
	// ConflictTries is the maximum number of attempts at a transaction that conflicts with another.
	// conflictWait is the maximum wait before the second attempt; it doubles each time, up to
	// longestWait. With these values, fifty concurrent writers of one item all succeed.
	ConflictTries = 40
	conflictWait  = 10 * time.Millisecond
	longestWait   = 400 * time.Millisecond
)

const (
	noReason       = "None"
	reasonFailed   = "ConditionalCheckFailed"
	reasonConflict = "TransactionConflict"
)

// throttled also recognizes transactions cancelled because of throttling. The SDK recognizes only throttled calls.
func throttled(err error) bool {
	var cancelled *types.TransactionCanceledException
	return errors.As(err, &cancelled) && slices.ContainsFunc(cancelled.CancellationReasons,
		func(reason types.CancellationReason) bool {
			return code(reason) == "ThrottlingError" || code(reason) == "ProvisionedThroughputExceeded"
		})
}

// transact makes all of the writes or none. It retries after conflicts. The SDK adds a token to
// each call, so if it retries a call after a lost response, the writes are made only once.
func transact(ctx context.Context, client *dynamodb.Client, writes []types.TransactWriteItem) error {
	return transactOnce(ctx, client, writes, nil)
}

// If a call is repeated with the same token and writes within ten minutes, DynamoDB performs it only once.
func transactOnce(ctx context.Context, client *dynamodb.Client, writes []types.TransactWriteItem, token *string) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	for try := 1; ; try++ {
		_, err := client.TransactWriteItems(ctx,
			&dynamodb.TransactWriteItemsInput{TransactItems: writes, ClientRequestToken: token})
		if err == nil || !conflicts(err) || try == ConflictTries {
			return asRefusal(err)
		}
		if !clock.Wait(ctx, rand.N(LongestConflictWait(try))) {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// LongestConflictWait returns the maximum wait before an attempt. The first attempt has number 1.
func LongestConflictWait(try int) time.Duration {
	return min(conflictWait<<min(max(try-1, 0), 10), longestWait)
}

// conflicts reports whether a transaction was cancelled only because of a concurrent write.
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

// refusal is the error of a transaction that was cancelled because a condition failed.
type refusal struct {
	// failed reports, for each write, whether its condition failed. items holds the previous items of the writes that
	// asked for them.
	failed []bool
	items  []item
	err    error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

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

func refused(err error) *refusal {
	var r *refusal
	errors.As(err, &r)
	return r
}
