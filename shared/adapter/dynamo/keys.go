package dynamo

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
)

// Keys is a credential.Store and a credential.TokenStore.
//
// The id of a key is the beginning of its hash, and the key of its item. So the id and
// the secret lead to the same item, and revoking a key is one write. A token's item is
// found by the token's hash and names its key, whose item is read for each use of the
// token: tokens need no update when their key is revoked.
type Keys struct {
	client *dynamodb.Client
	table  string
}

var (
	_ credential.Store      = (*Keys)(nil)
	_ credential.TokenStore = (*Keys)(nil)
)

// NewKeys returns the keys and client tokens in the table.
func NewKeys(client *dynamodb.Client, table string) *Keys { return &Keys{client, table} }

// keysByAccount is the index of keys; it has no tokens.
const keysByAccount = "keys-by-account"

// CreateKey stores a new key by one write, which can be repeated.
//
// Errors: fault.Conflict if another key has its hash or its id.
func (k *Keys) CreateKey(ctx context.Context, key credential.Key) error {
	values, err := attributevalue.MarshalMap(newKeyItem(key))
	if err != nil {
		return fmt.Errorf("dynamo: create a key: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err = k.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &k.table, Item: values,
		ConditionExpression:                 aws.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if old, failed := conditionFailed(err); failed {
		if kept, err := readKey(old); err == nil && reflect.DeepEqual(kept, key) {
			return nil
		}
		return credential.ErrKeyExists
	}
	return storeError("create a key", err)
}

// FindKey returns the key with the hash, revoked or not, by one consistent read.
//
// Errors: fault.NotFound.
func (k *Keys) FindKey(ctx context.Context, hash credential.Hash) (credential.Key, error) {
	key, err := k.key(ctx, credential.KeyID(hash))
	if err == nil && key.Hash != hash {
		return credential.Key{}, credential.ErrKeyNotFound
	}
	return key, err
}

// key returns the key with the id.
func (k *Keys) key(ctx context.Context, id string) (credential.Key, error) {
	found, err := k.get(ctx, id)
	if err != nil {
		return credential.Key{}, storeError("find a key", err)
	}
	if found == nil {
		return credential.Key{}, credential.ErrKeyNotFound
	}
	return readKey(found)
}

// get reads an item and returns nil if there is none.
func (k *Keys) get(ctx context.Context, id string) (item, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	got, err := k.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &k.table, Key: item{"id": text(id)}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	return got.Item, nil
}

// ListKeys returns the keys of an account, or of all if it is empty, oldest first. It
// reads an index, which lags by about a second.
func (k *Keys) ListKeys(ctx context.Context, account string) ([]credential.Key, error) {
	var keys []credential.Key
	for start := item(nil); ; {
		items, next, err := k.page(ctx, account, start)
		if err != nil {
			return nil, storeError("list keys", err)
		}
		for _, found := range items {
			key, err := readKey(found)
			if err != nil {
				return nil, err
			}
			keys = append(keys, key)
		}
		if next == nil {
			break
		}
		start = next
	}
	slices.SortFunc(keys, func(a, b credential.Key) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return keys, nil
}

// page reads one page of the index.
func (k *Keys) page(ctx context.Context, account string, start item) (items []item, next item, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if account == "" {
		got, err := k.client.Scan(ctx,
			&dynamodb.ScanInput{TableName: &k.table, IndexName: aws.String(keysByAccount), ExclusiveStartKey: start})
		if err != nil {
			return nil, nil, err
		}
		return got.Items, got.LastEvaluatedKey, nil
	}
	got, err := k.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &k.table, IndexName: aws.String(keysByAccount), ExclusiveStartKey: start,
		KeyConditionExpression:    aws.String("account = :account"),
		ExpressionAttributeValues: item{":account": text(account)},
	})
	if err != nil {
		return nil, nil, err
	}
	return got.Items, got.LastEvaluatedKey, nil
}

// RevokeKey marks the key with the id as revoked at the time and returns it. The key with
// the id by asks for it, or the operator if by is empty. For the operator it is one write,
// which keeps an earlier time; for a key it is a transaction on the condition that by is
// valid, between reads of both.
//
// Errors: fault.NotFound; fault.Unauthorized if by is revoked, expired or unknown;
// fault.Unavailable.
func (k *Keys) RevokeKey(ctx context.Context, by, id string, at time.Time) (credential.Key, error) {
	revocation := &types.Update{
		TableName: &k.table, Key: item{"id": text(id)},
		UpdateExpression:          aws.String("SET revoked_at = if_not_exists(revoked_at, :at)"),
		ConditionExpression:       aws.String("attribute_exists(#hash)"),
		ExpressionAttributeNames:  map[string]string{"#hash": "hash"},
		ExpressionAttributeValues: item{":at": number(at.UnixMilli())},
	}
	if by != "" {
		return k.revokeBy(ctx, by, id, revocation)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	revoked, err := k.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: revocation.TableName, Key: revocation.Key, UpdateExpression: revocation.UpdateExpression,
		ConditionExpression:       revocation.ConditionExpression,
		ExpressionAttributeNames:  revocation.ExpressionAttributeNames,
		ExpressionAttributeValues: revocation.ExpressionAttributeValues,
		ReturnValues:              types.ReturnValueAllNew,
	})
	if _, failed := conditionFailed(err); failed {
		return credential.Key{}, credential.ErrKeyNotFound
	}
	if err != nil {
		return credential.Key{}, storeError("revoke a key", err)
	}
	return readKey(revoked.Attributes)
}

// revokeBy revokes the key with the id if it is of the account of by and by is valid.
func (k *Keys) revokeBy(ctx context.Context, by, id string, revocation *types.Update) (credential.Key, error) {
	powerless := credential.KeyInvalid(by)
	revoker, err := k.key(ctx, by)
	if fault.Is(err, fault.NotFound) {
		return credential.Key{}, powerless
	}
	if err != nil {
		return credential.Key{}, err
	}
	revocation.ConditionExpression = aws.String(*revocation.ConditionExpression + " AND account = :account")
	revocation.ExpressionAttributeValues[":account"] = text(revoker.Account)
	err = transact(ctx, k.client, []types.TransactWriteItem{
		{ConditionCheck: &types.ConditionCheck{
			TableName: &k.table, Key: item{"id": text(by)},
			ConditionExpression: aws.String("attribute_exists(#hash) AND attribute_not_exists(revoked_at) AND " +
				"(attribute_not_exists(expires_at) OR expires_at > :at)"),
			ExpressionAttributeNames:  map[string]string{"#hash": "hash"},
			ExpressionAttributeValues: item{":at": revocation.ExpressionAttributeValues[":at"]},
		}},
		{Update: revocation},
	})
	switch r := refused(err); {
	case r != nil && r.failed[0]:
		return credential.Key{}, powerless
	case r != nil:
		return credential.Key{}, credential.ErrKeyNotFound
	case err != nil:
		return credential.Key{}, storeError("revoke a key", err)
	}
	return k.key(ctx, id)
}

// keyItem is the item of a key. Times are in milliseconds.
type keyItem struct {
	ID        string `dynamodbav:"id"`
	Hash      string `dynamodbav:"hash"`
	Account   string `dynamodbav:"account"`
	Tier      string `dynamodbav:"tier"`
	Label     string `dynamodbav:"label,omitempty"`
	Admin     bool   `dynamodbav:"admin,omitempty"`
	CreatedAt int64  `dynamodbav:"created_at"`
	ExpiresAt int64  `dynamodbav:"expires_at,omitempty"`
	RevokedAt int64  `dynamodbav:"revoked_at,omitempty"`
	// Models and Routes are absent where the key is not limited to any.
	Models []string                `dynamodbav:"models,omitempty"`
	Routes []credential.RouteGroup `dynamodbav:"routes,omitempty"`
}

func newKeyItem(key credential.Key) keyItem {
	return keyItem{
		ID: key.ID, Hash: key.Hash.String(), Account: key.Account, Tier: key.Tier, Label: key.Label, Admin: key.Admin,
		CreatedAt: key.CreatedAt.UnixMilli(), ExpiresAt: optionalMillis(key.ExpiresAt),
		RevokedAt: optionalMillis(key.RevokedAt), Models: key.Limits.Models, Routes: key.Limits.Routes,
	}
}

func readKey(i item) (credential.Key, error) {
	var read keyItem
	if err := attributevalue.UnmarshalMap(i, &read); err != nil {
		return credential.Key{}, fmt.Errorf("dynamo: read a key: %w", err)
	}
	key := credential.Key{
		ID: read.ID, Account: read.Account, Tier: read.Tier, Label: read.Label, Admin: read.Admin,
		CreatedAt: time.UnixMilli(read.CreatedAt).UTC(), ExpiresAt: optionalTime(read.ExpiresAt),
		RevokedAt: optionalTime(read.RevokedAt), Limits: credential.Limits{Models: read.Models, Routes: read.Routes},
	}
	hash, err := hex.DecodeString(read.Hash)
	if err != nil || len(hash) != len(key.Hash) {
		return credential.Key{}, fmt.Errorf("dynamo: the hash of the key %s is malformed", read.ID)
	}
	copy(key.Hash[:], hash)
	return key, nil
}
