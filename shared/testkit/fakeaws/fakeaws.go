// Package fakeaws is a stand-in for DynamoDB, SQS and Step Functions in memory, over simulated time. It
// counts capacity units and limits them like AWS.
//
// The service's own adapters call it through the clients of the AWS SDK: Config returns a configuration
// whose calls never leave the process. The stand-in therefore sees the requests that AWS would see, with
// their keys, conditions and sizes.
//
// A call returns at once: simulated time passes only between calls. A repeated attempt after a refusal
// counts in its real second. A Cloud is not safe for concurrent use, but its DynamoDB is.
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

// Clock gives simulated time, and calls functions at simulated times.
type Clock interface {
	Now() time.Time
	// Turn numbers what happens: calls with one number are of one caller, who makes them one
	// after another.
	Turn() int64
	// After calls the function after this time.
	After(wait time.Duration, call func())
}

// Cloud is the services of one AWS account in one region.
type Cloud struct {
	DynamoDB *DynamoDB
	SQS      *SQS
	StepFn   *StepFunctions
	clock    Clock

	mu sync.Mutex
	// told is the metadata of answers in the second toldAt.
	told   middleware.Metadata
	toldAt int64
}

// New returns an account that has the tables and nothing else. The random source decides
// which messages a queue delivers twice.
func New(clock Clock, random *rand.Rand, tables []dynamo.Table) *Cloud {
	c := &Cloud{DynamoDB: newDynamoDB(clock, tables), SQS: newSQS(clock, random), clock: clock}
	c.StepFn = newStepFunctions(c)
	return c
}

// Config returns a configuration for clients of the services.
func (c *Cloud) Config() aws.Config {
	return aws.Config{Region: "us-east-1", APIOptions: []func(*middleware.Stack) error{
		func(stack *middleware.Stack) error { return stack.Initialize.Add(answering{c}, middleware.After) },
	}}
}

// answering answers calls before they are encoded.
type answering struct{ cloud *Cloud }

// ID names the middleware.
func (answering) ID() string { return "Simulation" }

// HandleInitialize answers a call.
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

// metadata returns an answer's metadata: the server's time, in whole seconds.
func (c *Cloud) metadata(ctx context.Context) middleware.Metadata {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock.Now().Unix(); now != c.toldAt {
		c.told, c.toldAt = c.newMetadata(ctx), now
	}
	return c.told.Clone()
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

// call answers a call by the type of its input.
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
	return nil, fmt.Errorf("fakeaws: no answer for %T", input)
}

// Reset forgets the counted units, and keeps the tables, messages and executions.
func (c *Cloud) Reset() { c.DynamoDB.meter.reset() }
