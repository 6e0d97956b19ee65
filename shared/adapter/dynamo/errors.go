package dynamo

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/awsclient"
)

// storeError converts an error of a call to a fault if a retry may succeed. It returns faults unchanged.
func storeError(what string, err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	if conflicts(err) || throttled(err) || awsclient.IsThrottle(err) {
		return busy(err)
	}
	return fmt.Errorf("dynamo: %s: %w", what, err)
}

// busy returns the error for records that are throttled or being written concurrently. cause may be nil.
func busy(cause error) *fault.Error {
	busy := fault.Wrap(cause, fault.Unavailable, "The database is busy. Try again.")
	busy.RetryAfter = time.Second
	return busy
}

// conditionFailed reports whether a write's condition failed. It returns the current item if the write asked for it.
func conditionFailed(err error) (old item, failed bool) {
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		return refused.Item, true
	}
	return nil, false
}
