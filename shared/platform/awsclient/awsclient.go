// Package awsclient holds how all clients of AWS try, and give up on, a call
// that is answered within moments. docs/aws-calls.md lists the calls.
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
	// Attempts is how often a call is tried that was throttled, failed inside
	// AWS or got no answer.
	Attempts = 4
	// AttemptTime bounds the wait for the answer of one attempt.
	AttemptTime = 3 * time.Second
	// CallTime bounds an operation with all its calls and their attempts; a
	// caller's context may end it earlier.
	CallTime = 15 * time.Second

	// firstBackoff is how long the wait before the second attempt is at most. It
	// doubles with each, up to longestBackoff.
	firstBackoff, longestBackoff = 50 * time.Millisecond, time.Second
)

// Retryer makes the retryer of one client. Besides the attempts of a call it
// bounds those of the client together: its budget of tokens is used up by
// attempts that fail, so that trouble in AWS is not met with four times the load.
func Retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = Attempts
		o.Backoff = retry.BackoffDelayerFunc(backoff)
	})
}

func backoff(attempt int, _ error) (time.Duration, error) {
	return rand.N(min(firstBackoff<<min(max(attempt-1, 0), 10), longestBackoff)), nil
}

// HTTPClient makes the transport of one client. The wait is what a call is
// expected to take by itself, such as a long poll, on top of AttemptTime.
func HTTPClient(wait time.Duration) aws.HTTPClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = wait + AttemptTime
	})
}

// IsThrottle reports whether a call was refused for coming too fast.
func IsThrottle(err error) bool {
	return retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}.IsErrorThrottle(err).Bool()
}
