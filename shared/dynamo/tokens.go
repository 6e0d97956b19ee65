package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/credential"
	"cutroom/shared/fault"
)

const (
	// tokenPrefix and a token's hash are the id of its item.
	tokenPrefix = "token/"
	// keptExpired is for how long an expired token is still told from one that
	// never was.
	keptExpired = time.Hour
)

// CreateToken keeps a new token: one write, the same when it is repeated. The
// table's TTL removes it.
func (k *Keys) CreateToken(ctx context.Context, token credential.Token) error {
	scope, err := json.Marshal(token.Scope)
	if err != nil {
		return fmt.Errorf("dynamo: create a token: %w", err)
	}
	i := item{
		"id": text(tokenPrefix + token.Hash.String()), "key_id": text(token.Key.ID), "scope": text(string(scope)),
		"created_at": moment(token.CreatedAt), "expires_at": moment(token.ExpiresAt),
		ttlAttribute: seconds(token.ExpiresAt.Add(keptExpired)),
	}
	set(i, "metadata", string(token.Metadata))
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err = k.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &k.table, Item: i})
	return storeError("create a token", err)
}

// FindToken gives the token with the hash and its key as it is now: two
// consistent reads, the second of what the first names. To have them in one, each
// token would have to be marked when its key is revoked, which needs a list of a
// key's tokens in step with them: three writes in a transaction for each token
// made, at twelve times the price of the read that they save.
//
// Errors: fault.NotFound.
func (k *Keys) FindToken(ctx context.Context, hash credential.Hash) (credential.Token, error) {
	missing := fault.New(fault.NotFound, "Token not found.")
	found, err := k.get(ctx, tokenPrefix+hash.String())
	if err != nil {
		return credential.Token{}, storeError("find a token", err)
	}
	if found == nil {
		return credential.Token{}, missing
	}
	r := reader{item: found}
	token := credential.Token{Hash: hash, CreatedAt: r.moment("created_at"), ExpiresAt: r.moment("expires_at")}
	if metadata := r.text("metadata"); metadata != "" {
		token.Metadata = json.RawMessage(metadata)
	}
	scope, key := r.text("scope"), r.text("key_id")
	if r.err != nil {
		return credential.Token{}, r.err
	}
	if err := json.Unmarshal([]byte(scope), &token.Scope); err != nil {
		return credential.Token{}, fmt.Errorf("dynamo: the scope of a token: %w", err)
	}
	if token.Key, err = k.key(ctx, key); fault.Is(err, fault.NotFound) {
		return credential.Token{}, missing
	}
	return token, err
}
