package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/platform/awsclient"
)

// callTime bounds a call with its repetitions. Every write of this package is safe
// to repeat, see docs/aws-calls.md.
const callTime = awsclient.CallTime

// NewClient makes a client for the stores of this package.
func NewClient(config aws.Config) *dynamodb.Client {
	if config.HTTPClient == nil {
		config.HTTPClient = awsclient.HTTPClient(0)
	}
	return dynamodb.NewFromConfig(config, func(o *dynamodb.Options) {
		// An item that a transaction holds is free again in milliseconds.
		o.Retryer = retry.AddWithErrorCodes(awsclient.Retryer(), "TransactionConflictException")
	})
}
