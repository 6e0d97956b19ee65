package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/platform/awsclient"
)

// callTime bounds a call with its retries. Every write of this package is safe to
// repeat, see calls.md of awstest.
const callTime = awsclient.CallTime

// NewClient returns a client for the stores of this package.
func NewClient(config aws.Config) *dynamodb.Client {
	config.HTTPClient = awsclient.HTTPClient(config, 0)
	return dynamodb.NewFromConfig(config, func(o *dynamodb.Options) {
		// A transaction locks its items only for milliseconds.
		o.Retryer = retry.AddWithErrorCodes(awsclient.Retryer(), "TransactionConflictException")
	})
}
