// Package fakeaws replaces DynamoDB, SQS and Step Functions with in-memory fakes on simulated time. It counts
// capacity units and limits them like AWS.
//
// The service's own adapters call it through the AWS SDK's clients: Config returns a configuration whose calls never
// leave the process. So the fake sees the requests that AWS would see, with their keys, conditions and sizes.
//
// Calls return immediately: simulated time passes only between calls. A retry after a rejection counts toward the
// second in which it would really happen. A Cloud is not safe for concurrent use, but its DynamoDB is.
package fakeaws

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"cutroom/shared/adapter/dynamo"
)

// Clock returns the simulated time and schedules function calls.
type Clock interface {
	Now() time.Time
	// Turn returns a number that identifies the current caller. Calls with the same number are
	// made one after another.
	Turn() int64
	// After schedules a function to be called after the given time.
	After(wait time.Duration, call func())
}

// Cloud has the services of one AWS account in one region.
type Cloud struct {
	DynamoDB *DynamoDB
	SQS      *SQS
	StepFn   *StepFunctions
	clock    Clock

	mu sync.Mutex
	// sent is the metadata of all responses in the current second, which is in sentAt.
	sent   middleware.Metadata
	sentAt int64
}

// New returns an account that has only the given tables. random decides which messages a queue delivers twice.
func New(clock Clock, random *rand.Rand, tables []dynamo.Table) *Cloud {
	c := &Cloud{DynamoDB: newDynamoDB(clock, tables), SQS: newSQS(clock, random), clock: clock}
	c.StepFn = newStepFunctions(c)
	return c
}

func (c *Cloud) Config() aws.Config {
	return aws.Config{Region: "us-east-1", APIOptions: []func(*middleware.Stack) error{
		func(stack *middleware.Stack) error { return stack.Initialize.Add(answering{c}, middleware.After) },
	}}
}

// answering is a middleware that responds to calls before they are encoded.
type answering struct{ cloud *Cloud }

func (answering) ID() string { return "Simulation" }

func (a answering) HandleInitialize(ctx context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (
	out middleware.InitializeOutput, metadata middleware.Metadata, err error,
) {
	answer, err := a.cloud.call(in.Parameters)
	out.Result = answer
	if err != nil {
		return out, metadata, err
	}
	return out, a.cloud.metadata(ctx), nil
}

func (c *Cloud) metadata(ctx context.Context) middleware.Metadata {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock.Now().Unix(); now != c.sentAt {
		c.sent, c.sentAt = c.newMetadata(ctx), now
	}
	return c.sent.Clone()
}

func (c *Cloud) newMetadata(ctx context.Context) middleware.Metadata {
	response := &smithyhttp.Response{Response: &http.Response{Header: http.Header{}}}
	response.Header.Set("Date", c.clock.Now().UTC().Format(http.TimeFormat))
	_, metadata, _ := awsmiddleware.RecordResponseTiming{}.HandleDeserialize(ctx, middleware.DeserializeInput{},
		middleware.DeserializeHandlerFunc(func(context.Context, middleware.DeserializeInput) (
			middleware.DeserializeOutput, middleware.Metadata, error,
		) {
			return middleware.DeserializeOutput{RawResponse: response}, middleware.Metadata{}, nil
		}))
	return metadata
}

func (c *Cloud) call(input any) (any, error) {
	if answer, err, known := c.DynamoDB.try(input); known {
		return answer, err
	}
	if answer, err, known := c.SQS.call(input); known {
		return answer, err
	}
	if answer, err, known := c.StepFn.call(input); known {
		return answer, err
	}
	return nil, fmt.Errorf("fakeaws: unsupported input %T", input)
}

// Reset resets the unit counts, but keeps tables, messages and executions.
func (c *Cloud) Reset() { c.DynamoDB.meter.reset() }
