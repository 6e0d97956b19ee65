package dynamo

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

const (
	// attempts is how often a call is tried, throttled or failed, with growing
	// waits between. Every write of this package is safe to repeat, see
	// docs/aws-calls.md.
	attempts = 5
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
	return dynamodb.NewFromConfig(config, func(o *dynamodb.Options) { o.RetryMaxAttempts = attempts })
}
