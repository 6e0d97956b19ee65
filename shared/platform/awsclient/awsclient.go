// Package awsclient contains the retry policy and timeouts for AWS clients that make short calls,
// which calls.tsv in the testdata of awstest lists.
package awsclient

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

const (
	// Attempts is the maximum for a call that is throttled, fails inside AWS or gets no response.
	Attempts = 4
	// AttemptTime limits the wait for a response in one attempt.
	AttemptTime = 3 * time.Second
	// CallTime limits an operation with all its calls and attempts.
	CallTime = 15 * time.Second

	// The longest wait before the second attempt. It doubles with each, up to longestBackoff.
	firstBackoff, longestBackoff = 50 * time.Millisecond, time.Second
)

// Retryer limits one client's retries, so that a fault in AWS does not meet four times the load.
func Retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = Attempts
		o.Backoff = retry.BackoffDelayerFunc(backoff)
	})
}

func backoff(attempt int, _ error) (time.Duration, error) { return rand.N(LongestWait(attempt)), nil }

// Attempts count from 1.
func LongestWait(attempt int) time.Duration {
	return min(firstBackoff<<min(max(attempt-1, 0), 10), longestBackoff)
}

// HTTPClient returns the configured transport, for example with AWS_CA_BUNDLE, or one that limits
// each attempt to AttemptTime plus wait, the duration of a long poll.
func HTTPClient(config aws.Config, wait time.Duration) aws.HTTPClient {
	if config.HTTPClient != nil {
		return config.HTTPClient
	}
	return buildable(wait)
}

func Transport(wait time.Duration) *http.Transport { return buildable(wait).GetTransport() }

func buildable(wait time.Duration) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = wait + AttemptTime
	})
}

func IsThrottle(err error) bool {
	return retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}.IsErrorThrottle(err).Bool()
}
