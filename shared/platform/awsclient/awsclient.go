// Package awsclient holds the retry policy and the timeouts that every AWS client with
// short calls shares. calls.tsv in the testdata of awstest lists the calls.
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
	// Attempts is how often a call is tried that is throttled, fails inside AWS or gets
	// no answer.
	Attempts = 4
	// AttemptTime bounds the wait for the answer of one attempt.
	AttemptTime = 3 * time.Second
	// CallTime bounds an operation with all its calls and their attempts; a caller's
	// context may end it earlier.
	CallTime = 15 * time.Second

	// firstBackoff is the longest wait before the second attempt. The wait doubles with
	// each attempt, up to longestBackoff.
	firstBackoff, longestBackoff = 50 * time.Millisecond, time.Second
)

// Retryer returns the retryer of one client. It bounds the attempts of each call, and
// those of the whole client by a budget of tokens that failed attempts use up, so that
// trouble in AWS is not met with four times the load.
func Retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = Attempts
		o.Backoff = retry.BackoffDelayerFunc(backoff)
	})
}

func backoff(attempt int, _ error) (time.Duration, error) { return rand.N(LongestWait(attempt)), nil }

// LongestWait returns the longest wait after an attempt, of which the first is 1, before the
// next one.
func LongestWait(attempt int) time.Duration {
	return min(firstBackoff<<min(max(attempt-1, 0), 10), longestBackoff)
}

// HTTPClient returns the transport of one client: the configuration's own, such as one that
// trusts the certificates of AWS_CA_BUNDLE, or else one that bounds attempts. The wait is how
// long a call is expected to take by itself, such as a long poll; AttemptTime is added to it.
func HTTPClient(config aws.Config, wait time.Duration) aws.HTTPClient {
	if config.HTTPClient != nil {
		return config.HTTPClient
	}
	return buildable(wait)
}

// Transport returns the same transport for calls of AWS that no client of its SDK makes.
func Transport(wait time.Duration) *http.Transport { return buildable(wait).GetTransport() }

func buildable(wait time.Duration) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = wait + AttemptTime
	})
}

// IsThrottle reports whether a call was refused for coming too fast.
func IsThrottle(err error) bool {
	return retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}.IsErrorThrottle(err).Bool()
}
