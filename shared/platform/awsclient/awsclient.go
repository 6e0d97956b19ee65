// Package awsclient contains the retry policy and timeouts for AWS clients that make short calls.
// These calls are listed in calls.tsv in awstest's testdata.
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
	// Attempts is the maximum number of attempts for a call that is throttled, fails inside AWS or gets no response.
	Attempts = 4
	// AttemptTime limits how long one attempt waits for a response.
	AttemptTime = 3 * time.Second
	// CallTime limits an operation, including all its calls and attempts.
	CallTime = 15 * time.Second

	// firstBackoff is the longest wait before the second attempt. The longest wait doubles with each further attempt,
	// up to longestBackoff.
	firstBackoff, longestBackoff = 50 * time.Millisecond, time.Second
)

// Retryer limits each client's retries, so that an outage in AWS does not cause four times the load.
func Retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = Attempts
		o.Backoff = retry.BackoffDelayerFunc(backoff)
	})
}

func backoff(attempt int, _ error) (time.Duration, error) { return rand.N(LongestWait(attempt)), nil }

// LongestWait returns the maximum wait before an attempt. The first attempt has number 1.
func LongestWait(attempt int) time.Duration {
	return min(firstBackoff<<min(max(attempt-1, 0), 10), longestBackoff)
}

// HTTPClient returns config's client if it has one, for example because AWS_CA_BUNDLE is set. Otherwise it returns a
// client that limits each attempt to AttemptTime plus wait, the duration of a long poll.
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
