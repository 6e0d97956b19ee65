package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
)

const (
	// tokenPrefix and a token's hash are the id of its item.
	tokenPrefix = "token/"
	// keptExpired is how long an expired token is still distinguished from an unknown
	// one.
	keptExpired = time.Hour
)

// tokenItem is the item of a token. Times are in milliseconds, TTL is in seconds.
type tokenItem struct {
	ID string `dynamodbav:"id"`
	// Key is the id of the key that the token was minted from.
	Key string `dynamodbav:"key_id"`
	// Scope and Metadata are JSON.
	Scope     string `dynamodbav:"scope"`
	Metadata  string `dynamodbav:"metadata,omitempty"`
	CreatedAt int64  `dynamodbav:"created_at"`
	ExpiresAt int64  `dynamodbav:"expires_at"`
	TTL       int64  `dynamodbav:"ttl"`
	Verifier  []byte `dynamodbav:"verifier,omitempty"`
}

// CreateToken stores a new token by one write, which can be repeated. The table's TTL
// removes it.
//
// Errors: fault.Unavailable.
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

// FindToken returns the token with the hash and its key as it is now: two consistent
// reads, of the token and then of its key. One read would suffice if a revocation marked
// every token of a key, but that needs a list of the key's tokens: three writes in a
// transaction for each new token, at twelve times the price of the read that they save.
//
// Errors: fault.NotFound; fault.Unavailable.
func (k *Keys) FindToken(ctx context.Context, hash credential.Hash) (credential.Token, error) {
	found, err := k.get(ctx, tokenPrefix+hash.String())
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
		return credential.Token{}, fmt.Errorf("dynamo: the scope of a token: %w", err)
	}
	if token.Key, err = k.key(ctx, read.Key); fault.Is(err, fault.NotFound) {
		return credential.Token{}, credential.ErrTokenNotFound
	}
	return token, err
}
