package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/testkit/fakeaws"
)

// courier delays each of a client's requests until a test decides its fate.
type courier struct {
	random *rand.Rand
	around func(ctx context.Context, request func())

	mu     sync.Mutex
	paused []*pausedCall
	quiet  bool
	// again counts delivered requests that will be delivered again.
	again   int
	history []string
}

type pausedCall struct {
	what string
	fate chan fate
}

type fate int

const (
	arrives fate = iota
	isLost
	losesAnswer
	arrivesTwice
	conflicts
	arrivesLate
)

var errGone = errors.New("the connection is gone")

type callKey struct{}

func (c *courier) open(cloud *fakeaws.Cloud) *dynamodb.Client {
	config := cloud.Config()
	config.APIOptions = append(config.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Insert(c, "Simulation", middleware.Before)
	})
	return dynamo.NewClient(config)
}

// ID makes courier a middleware.
func (*courier) ID() string { return "Pausing" }

func (c *courier) HandleInitialize(ctx context.Context, in middleware.InitializeInput,
	next middleware.InitializeHandler) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
	batch, isBatch := in.Parameters.(*dynamodb.BatchGetItemInput)
	if !isBatch {
		return c.one(ctx, in, next)
	}
	// DynamoDB reads the items of a batch in any order.
	result := &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{}}
	for name, asked := range batch.RequestItems {
		for _, at := range c.order(len(asked.Keys)) {
			single := in
			single.Parameters = &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
				name: {Keys: asked.Keys[at : at+1], ConsistentRead: asked.ConsistentRead},
			}}
			if out, metadata, err = c.one(ctx, single, next); err != nil {
				return out, metadata, err
			}
			read := out.Result.(*dynamodb.BatchGetItemOutput).Responses[name]
			result.Responses[name] = append(result.Responses[name], read...)
		}
	}
	out.Result = result
	return out, metadata, nil
}

func (c *courier) order(n int) []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.quiet {
		return c.random.Perm(n)
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func (c *courier) one(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	out middleware.InitializeOutput, metadata middleware.Metadata, err error,
) {
	arrive := func() { out, metadata, err = next.HandleInitialize(ctx, in) }
	if c.around != nil {
		arrive = func() { c.around(ctx, func() { out, metadata, err = next.HandleInitialize(ctx, in) }) }
	}
	what := describe(in.Parameters)
	if call := ctx.Value(callKey{}); call != nil {
		what = fmt.Sprint(call, ": ", what)
	}
	switch c.wait(what) {
	case isLost:
		return out, metadata, errGone
	case losesAnswer:
		arrive()
		return middleware.InitializeOutput{}, metadata, errGone
	case arrivesTwice:
		arrive()
		c.repeats(1)
		c.wait("again " + what)
		c.repeats(-1)
	case arrivesLate:
		go func() {
			c.wait("late " + what)
			arrive()
		}()
		return middleware.InitializeOutput{}, middleware.Metadata{}, errGone
	case conflicts:
		if transaction, ok := in.Parameters.(*dynamodb.TransactWriteItemsInput); ok {
			reasons := make([]types.CancellationReason, len(transaction.TransactItems))
			for i := range reasons {
				reasons[i].Code = aws.String("TransactionConflict")
			}
			return out, metadata, &types.TransactionCanceledException{CancellationReasons: reasons}
		}
	}
	arrive()
	return out, metadata, err
}

func (c *courier) repeats(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again += n
}

func (c *courier) wait(what string) fate {
	c.mu.Lock()
	if c.quiet {
		c.mu.Unlock()
		return arrives
	}
	call := &pausedCall{what, make(chan fate)}
	c.paused = append(c.paused, call)
	c.mu.Unlock()
	return <-call.fate
}

func (c *courier) pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.paused)
}

func (c *courier) isLate(at int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.HasPrefix(c.paused[at].what, "late ")
}

func (c *courier) deliver(at int, end fate) {
	c.mu.Lock()
	call := c.paused[at]
	c.paused = slices.Delete(c.paused, at, at+1)
	c.history = append(c.history, fmt.Sprintf("   [%d] %s", end, call.what))
	c.mu.Unlock()
	call.fate <- end
}

func (c *courier) recent() string {
	return strings.Join(c.history[max(0, len(c.history)-120):], "\n")
}

func describe(input any) string {
	key := func(k map[string]types.AttributeValue) string { return textIn(k, "id") }
	switch in := input.(type) {
	case *dynamodb.BatchGetItemInput:
		for _, asked := range in.RequestItems {
			return "read " + key(asked.Keys[0])
		}
	case *dynamodb.GetItemInput:
		return "read " + key(in.Key)
	case *dynamodb.UpdateItemInput:
		return fmt.Sprint("update ", key(in.Key), ": ", *in.UpdateExpression, in.ExpressionAttributeNames)
	case *dynamodb.TransactWriteItemsInput:
		text := "transact"
		for _, w := range in.TransactItems {
			if w.Update != nil {
				text += fmt.Sprint(" ", key(w.Update.Key), ": ", *w.Update.UpdateExpression, w.Update.ExpressionAttributeNames, ";")
			}
		}
		return text
	}
	return fmt.Sprintf("%T", input)
}

func show(i map[string]types.AttributeValue) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(i)) {
		switch v := i[name].(type) {
		case *types.AttributeValueMemberN:
			all = append(all, name+"="+v.Value)
		case *types.AttributeValueMemberS:
			all = append(all, name+"="+v.Value)
		}
	}
	return strings.Join(all, " ")
}

func num(i map[string]types.AttributeValue, name string) int64 {
	v, ok := i[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	n, _ := strconv.ParseInt(v.Value, 10, 64)
	return n
}
