package dynamo

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
)

// Keys is a credential.Store and a credential.TokenStore.
//
// A key's id is both a prefix of its hash and the primary key of its item, so revoking a key takes
// one write. A token's item is found by the token's hash and names the token's key, whose item is
// read whenever the token is used. So revoking a key does not have to update its tokens.
type Keys struct {
	client     *dynamodb.Client
	table, log string
}

var (
	_ credential.Store      = (*Keys)(nil)
	_ credential.TokenStore = (*Keys)(nil)
)

func NewKeys(client *dynamodb.Client, table, usage string) *Keys { return &Keys{client, table, usage} }

// keysByAccount contains no tokens.
const keysByAccount = "keys-by-account"

func (k *Keys) CreateKey(ctx context.Context, from audit.Origin, key credential.Key) error {
	values, err := attributevalue.MarshalMap(newKeyItem(key))
	if err != nil {
		return fmt.Errorf("dynamo: create a key: %w", err)
	}
	created, err := credential.CreationEntry(from, key)
	if err != nil {
		return fmt.Errorf("dynamo: create a key: %w", err)
	}
	err = transact(ctx, k.client, append([]types.TransactWriteItem{
		{Put: &types.Put{
			TableName: &k.table, Item: values, ConditionExpression: aws.String("attribute_not_exists(id)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}},
		note(k.log, created),
	}, k.acting(from)...))
	if r := refused(err); r != nil {
		if kept, err := readKey(r.items[0]); err == nil && reflect.DeepEqual(kept, key) {
			return nil // an earlier attempt succeeded
		}
		if len(r.failed) > 2 && r.failed[2] {
			return credential.KeyInvalid(from.By)
		}
		return credential.ErrKeyExists
	}
	return storeError("create a key", err)
}

// FindKey uses a consistent read.
func (k *Keys) FindKey(ctx context.Context, hash credential.Hash) (credential.Key, error) {
	key, err := k.key(ctx, credential.KeyID(hash))
	if err == nil && key.Hash != hash {
		return credential.Key{}, credential.ErrKeyNotFound
	}
	return key, err
}

func (k *Keys) key(ctx context.Context, id string) (credential.Key, error) {
	found, err := readItem(ctx, k.client, k.table, item{"id": text(id)})
	if err != nil {
		return credential.Key{}, storeError("find a key", err)
	}
	if found == nil || found["account"] == nil { // unknown or forgotten
		return credential.Key{}, credential.ErrKeyNotFound
	}
	return readKey(found)
}

// ListKeys reads an index that lags by about a second.
func (k *Keys) ListKeys(ctx context.Context, account string) (keys []credential.Key, err error) {
	for found, err := range k.listed(ctx, account) {
		if err != nil {
			return nil, storeError("list keys", err)
		}
		key, err := readKey(found)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b credential.Key) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return keys, nil
}

func (k *Keys) listed(ctx context.Context, account string) iter.Seq2[item, error] {
	if account != "" {
		return queried(ctx, k.client, &dynamodb.QueryInput{
			TableName: &k.table, IndexName: aws.String(keysByAccount), KeyConditionExpression: aws.String("account = :account"),
			ExpressionAttributeValues: item{":account": text(account)},
		})
	}
	return func(yield func(item, error) bool) {
		scan := &dynamodb.ScanInput{TableName: &k.table, IndexName: aws.String(keysByAccount)}
		for pages := dynamodb.NewScanPaginator(k.client, scan); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, i := range page.Items {
				if !yield(i, nil) {
					return
				}
			}
		}
	}
}

// If the caller acts through a key, RevokeKey also reads that key, and the transaction requires
// that it is still valid.
func (k *Keys) RevokeKey(ctx context.Context, from audit.Origin, id string) (credential.Key, error) {
	account := ""
	if !from.IsOperator() {
		by, err := k.key(ctx, from.By)
		if fault.Is(err, fault.NotFound) || err == nil && !by.Works(from.At) {
			return credential.Key{}, credential.KeyInvalid(from.By)
		}
		if err != nil {
			return credential.Key{}, err
		}
		account = by.Account
	}
	key, err := k.key(ctx, id)
	switch {
	case err != nil:
		return credential.Key{}, err
	case account != "" && account != key.Account:
		return credential.Key{}, credential.ErrKeyNotFound
	case !key.RevokedAt.IsZero():
		return key, nil
	}
	writes, err := k.revocation(from, key)
	if err != nil {
		return credential.Key{}, err
	}
	err = transact(ctx, k.client, writes)
	if r := refused(err); r != nil {
		if len(writes) > 2 && r.failed[2] {
			return credential.Key{}, credential.KeyInvalid(from.By)
		}
		return k.key(ctx, id) // another call revoked it
	}
	if err != nil {
		return credential.Key{}, storeError("revoke a key", err)
	}
	key.RevokedAt = time.UnixMilli(from.At.UnixMilli()).UTC()
	return key, nil
}

// revocation returns the writes that revoke a key and add the audit entry. If the caller acts through a key, they
// include a check of that key.
func (k *Keys) revocation(from audit.Origin, key credential.Key) ([]types.TransactWriteItem, error) {
	entry, err := credential.RevocationEntry(from, key)
	if err != nil {
		return nil, fmt.Errorf("dynamo: revoke a key: %w", err)
	}
	return append([]types.TransactWriteItem{
		{Update: &types.Update{
			TableName: &k.table, Key: item{"id": text(key.ID)},
			UpdateExpression: aws.String("SET revoked_at = :at"), ConditionExpression: aws.String(unrevoked),
			ExpressionAttributeNames:  map[string]string{"#hash": "hash"},
			ExpressionAttributeValues: item{":at": number(from.At.UnixMilli())},
		}},
		note(k.log, entry),
	}, k.acting(from)...), nil
}

const unrevoked = "attribute_exists(#hash) AND attribute_not_exists(revoked_at)"

// acting returns the check that the acting key works, or none for the operator.
func (k *Keys) acting(from audit.Origin) []types.TransactWriteItem {
	if from.IsOperator() {
		return nil
	}
	return []types.TransactWriteItem{{ConditionCheck: &types.ConditionCheck{
		TableName: &k.table, Key: item{"id": text(from.By)},
		ConditionExpression:       aws.String(unrevoked + " AND (attribute_not_exists(expires_at) OR expires_at > :at)"),
		ExpressionAttributeNames:  map[string]string{"#hash": "hash"},
		ExpressionAttributeValues: item{":at": number(from.At.UnixMilli())},
	}}}
}

// ForgetKey removes the key from the index.
func (k *Keys) ForgetKey(ctx context.Context, id string) error {
	_, err := k.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &k.table, Key: item{"id": text(id)}, UpdateExpression: aws.String("REMOVE account"),
	})
	return storeError("forget a key", err)
}

// Times are in milliseconds.
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
	// Models and Routes are missing if the key has no such limit.
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
		return credential.Key{}, fmt.Errorf("dynamo: the hash of the key %s is invalid", read.ID)
	}
	copy(key.Hash[:], hash)
	return key, nil
}

const (
	tokenPrefix = "token/"
	// keptExpired is how long an expired token can still be distinguished from an unknown token.
	keptExpired = time.Hour
)

// Times are in milliseconds, except TTL, which is in seconds.
type tokenItem struct {
	ID  string `dynamodbav:"id"`
	Key string `dynamodbav:"key_id"`
	// Scope and Metadata contain JSON.
	Scope     string `dynamodbav:"scope"`
	Metadata  string `dynamodbav:"metadata,omitempty"`
	CreatedAt int64  `dynamodbav:"created_at"`
	ExpiresAt int64  `dynamodbav:"expires_at"`
	TTL       int64  `dynamodbav:"ttl"`
	Verifier  []byte `dynamodbav:"verifier,omitempty"`
}

// The table's TTL deletes an expired token.
func (k *Keys) CreateToken(ctx context.Context, token credential.Token) error {
	scope, err := json.Marshal(token.Scope)
	if err != nil {
		return fmt.Errorf("dynamo: create a token: %w", err)
	}
	values, err := attributevalue.MarshalMap(tokenItem{
		ID: tokenPrefix + token.Hash.String(), Key: token.Key.ID, Scope: string(scope), Metadata: string(token.Metadata),
		CreatedAt: token.CreatedAt.UnixMilli(), ExpiresAt: token.ExpiresAt.UnixMilli(),
		TTL: optionalSeconds(token.ExpiresAt.Add(keptExpired)), Verifier: token.Verifier,
	})
	if err != nil {
		return fmt.Errorf("dynamo: create a token: %w", err)
	}
	_, err = k.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &k.table, Item: values})
	return storeError("create a token", err)
}

// FindToken makes two consistent reads, first of the token and then of its key. One read would be enough if a
// revocation marked each of a key's tokens. But then creating a token would take a transaction of three writes, at
// twelve times the price of the read.
func (k *Keys) FindToken(ctx context.Context, hash credential.Hash) (credential.Token, error) {
	found, err := readItem(ctx, k.client, k.table, item{"id": text(tokenPrefix + hash.String())})
	if err != nil {
		return credential.Token{}, storeError("find a token", err)
	}
	if found == nil {
		return credential.Token{}, credential.ErrTokenNotFound
	}
	var read tokenItem
	if err := attributevalue.UnmarshalMap(found, &read); err != nil {
		return credential.Token{}, fmt.Errorf("dynamo: read a token: %w", err)
	}
	token := credential.Token{
		Hash: hash, CreatedAt: time.UnixMilli(read.CreatedAt).UTC(), ExpiresAt: time.UnixMilli(read.ExpiresAt).UTC(),
		Verifier: read.Verifier,
	}
	if read.Metadata != "" {
		token.Metadata = json.RawMessage(read.Metadata)
	}
	if err := json.Unmarshal([]byte(read.Scope), &token.Scope); err != nil {
		return credential.Token{}, fmt.Errorf("dynamo: read the scope of a token: %w", err)
	}
	if token.Key, err = k.key(ctx, read.Key); fault.Is(err, fault.NotFound) {
		return credential.Token{}, credential.ErrTokenNotFound
	}
	return token, err
}
