package dynamo

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

const (
	// attempts is how often a call is tried, throttled or failed, with growing
	// waits between. Every write of this package is safe to repeat, see
	// docs/aws-calls.md.
	attempts = 5
	// firstBackoff is how long the wait before the second attempt is at most. It
	// doubles with each attempt, up to longestBackoff.
	firstBackoff, longestBackoff = 50 * time.Millisecond, 2 * time.Second
	// answerTime bounds the wait for one answer: DynamoDB answers in
	// milliseconds, and a server that has gone silent is left for another.
	answerTime = 3 * time.Second
	// callTime bounds a call with its repetitions.
	callTime = 15 * time.Second
)

// NewClient makes a client for the stores of this package.
func NewClient(config aws.Config) *dynamodb.Client {
	if config.HTTPClient == nil {
		config.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.ResponseHeaderTimeout = answerTime
		})
	}
	return dynamodb.NewFromConfig(config, func(o *dynamodb.Options) {
		o.Retryer = retry.AddWithErrorCodes(retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.Backoff = attempts, retry.BackoffDelayerFunc(backoff)
		}), "TransactionConflictException") // a transaction has the item for some milliseconds
	})
}

func backoff(attempt int, _ error) (time.Duration, error) {
	return rand.N(min(firstBackoff<<min(attempt-1, 10), longestBackoff)), nil
}
