package dynamo_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/testkit/conformance"
)

// laggard responds to eventually consistent reads with the item's first state, because DynamoDB
// does not limit how old such a read may be.
type laggard struct {
	first map[string]middleware.InitializeOutput
}

func (laggard) ID() string { return "Laggard" }

func (l laggard) HandleInitialize(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	read, is := in.Parameters.(*dynamodb.GetItemInput)
	if !is {
		return next.HandleInitialize(ctx, in)
	}
	key := fmt.Sprint(*read.TableName, textIn(read.Key, "id"))
	if out, known := l.first[key]; known && !aws.ToBool(read.ConsistentRead) {
		return out, middleware.Metadata{}, nil
	}
	out, metadata, err := next.HandleInitialize(ctx, in)
	if _, known := l.first[key]; err == nil && !known {
		l.first[key] = out
	}
	return out, metadata, err
}

// A key that is cached for credential.CacheAge was valid when it was read, so a revoked key stops
// working within that time.
func TestRevokedKeyIsNeverReadFromOldState(t *testing.T) {
	cloud := local.Cloud(t)
	config, lags := cloud.Config(), laggard{map[string]middleware.InitializeOutput{}}
	config.APIOptions = append(config.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(lags, middleware.Before)
	})
	store := dynamo.NewKeys(dynamo.NewClient(config), cloud.MakeTable(t, "credentials"), cloud.MakeTable(t, "usage"))
	ctx, now := t.Context(), time.Now()
	key, err := credential.NewKey("ck_development", "acme", "default", "", now)
	conformance.OK(t, err)
	token := credential.Token{Hash: credential.HashOf("ek_a"), Key: key, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	find := func() [2]bool {
		foundKey, err := store.FindKey(ctx, key.Hash)
		conformance.OK(t, err)
		foundToken, err := store.FindToken(ctx, token.Hash)
		conformance.OK(t, err)
		return [2]bool{foundKey.RevokedAt.IsZero(), foundToken.Key.RevokedAt.IsZero()}
	}
	conformance.OK(t, store.CreateKey(ctx, audit.Operator(now), key))
	conformance.OK(t, store.CreateToken(ctx, token))
	conformance.Same(t, "the key and its token work", find(), [2]bool{true, true})
	_, err = store.RevokeKey(ctx, audit.Operator(now), key.ID)
	conformance.OK(t, err)
	conformance.Same(t, "after the revocation", find(), [2]bool{false, false})
}
