package dynamo

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"cutroom/shared/platform/awsclient"
)

// callTime is the timeout for a call, including its retries. Every write in this package may be retried.
const callTime = awsclient.CallTime

func NewClient(config aws.Config) *dynamodb.Client {
	config.HTTPClient = awsclient.HTTPClient(config, 0)
	return dynamodb.NewFromConfig(config, func(o *dynamodb.Options) {
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

func readItem(ctx context.Context, client *dynamodb.Client, table string, key item) (item, error) {
	got, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return got.Item, nil
}

func queried(ctx context.Context, client *dynamodb.Client, query *dynamodb.QueryInput) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		for pages := dynamodb.NewQueryPaginator(client, query); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, i := range page.Items {
				if !yield(i, nil) {
					return
				}
			}
		}
	}
}

// tryUpdate returns the attributes that the input asks for. If the condition fails, refused is
// true, and found is the current item or nil.
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
