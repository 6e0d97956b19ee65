package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"cutroom/shared/platform/awsclient"
)

// callTime limits a call with its retries, see docs/aws-calls.md. Every write of this package may be
// repeated safely.
const callTime = awsclient.CallTime

// NewClient returns a client for the stores of this package. Each of its calls ends after callTime.
func NewClient(config aws.Config) *dynamodb.Client {
	config.HTTPClient = awsclient.HTTPClient(config, 0)
	return dynamodb.NewFromConfig(config, func(o *dynamodb.Options) {
		// A transaction locks its items for milliseconds.
		o.Retryer = retry.AddWithErrorCodes(awsclient.Retryer(), "TransactionConflictException")
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("CallTime", withDeadline), middleware.Before)
		})
	})
}

func withDeadline(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return next.HandleInitialize(ctx, in)
}

// tryUpdate performs a conditional update and returns the attributes that the input asks for. If the
// condition fails, refused is true and found is the item as it is, nil if there is none.
func tryUpdate(
	ctx context.Context, client *dynamodb.Client, input *dynamodb.UpdateItemInput,
) (found item, refused bool, err error) {
	input.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	written, err := client.UpdateItem(ctx, input)
	if old, failed := conditionFailed(err); failed {
		return old, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	return written.Attributes, false, nil
}
