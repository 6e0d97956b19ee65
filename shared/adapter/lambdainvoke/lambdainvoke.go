// Package lambdainvoke starts Lambda functions. A role needs lambda:InvokeFunction on them.
package lambdainvoke

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"cutroom/shared/platform/awsclient"
)

// Function builds its only request itself, because the SDK's Lambda client makes a function's
// startup ten percent slower.
type Function struct {
	name    string
	config  aws.Config
	now     func() time.Time
	signer  *v4.Signer
	retryer aws.Retryer
	client  aws.HTTPClient
}

// NewFunction accepts a name or an ARN. now is the clock for request signatures.
func NewFunction(config aws.Config, name string, now func() time.Time) *Function {
	return &Function{
		name: name, config: config, now: now,
		signer: v4.NewSigner(), retryer: awsclient.Retryer(), client: awsclient.HTTPClient(config, 0),
	}
}

// Start starts the function without waiting for it. If the function fails, Lambda retries it.
// Calling Start twice starts the function twice.
func (f *Function) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := f.invoke(ctx)
		if err == nil {
			return nil
		}
		err = fmt.Errorf("lambda: start %s: %w", f.name, err)
		if attempt == f.retryer.MaxAttempts() || !f.retryer.IsErrorRetryable(err) {
			return err
		}
		wait, waitErr := f.retryer.RetryDelay(attempt, err)
		if waitErr != nil {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// invocations is the path of the Invoke operation. It starts with the version of Lambda's API.
const invocations = "/2015-03-31/functions/%s/invocations"

const sumOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func (f *Function) invoke(ctx context.Context) error {
	endpoint, err := awsclient.Endpoint(ctx, f.config, "Lambda")
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		endpoint+fmt.Sprintf(invocations, url.PathEscape(f.name)), nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-Amz-Invocation-Type", "Event")
	credentials, err := f.config.Credentials.Retrieve(ctx)
	if err != nil {
		return err
	}
	if err := f.signer.SignHTTP(ctx, credentials, request, sumOfNothing, "lambda", f.config.Region, f.now()); err != nil {
		return err
	}
	answer, err := f.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusAccepted {
		return nil
	}
	// For example, ResourceNotFoundException:http://… (Lambda API reference, "Errors").
	code, _, _ := strings.Cut(answer.Header.Get("X-Amzn-Errortype"), ":")
	return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: answer},
		Err: &smithy.GenericAPIError{Code: code}}
}
