package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
)

var (
	_ credential.TokenStore     = (*Keys)(nil)
	_ credential.TokenRetention = (*Keys)(nil)
)

const (
	insertToken = `insert into client_token
		(hash, key_hash, scope, metadata, created_at, expires_at, verifier) values (?, ?, ?, ?, ?, ?, ?)`
	tokenByHash = `select scope, metadata, client_token.created_at, client_token.expires_at, verifier,
		api_key.hash, id, account, tier, label, admin, api_key.created_at, api_key.expires_at, revoked_at, limits
	from client_token join api_key on api_key.hash = client_token.key_hash where client_token.hash = ?`
)

func (k *Keys) CreateToken(ctx context.Context, token credential.Token) error {
	scope, err := encode(token.Scope)
	if err != nil {
		return err
	}
	if err := k.db.admit(ctx, token.Key.Account, len(scope)+len(token.Metadata)); err != nil {
		return err
	}
	return k.db.write(ctx, "create a token", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, insertToken, token.Hash[:], token.Key.Hash[:], scope, string(token.Metadata),
			millis(token.CreatedAt), millis(token.ExpiresAt), []byte(token.Verifier))
		return err
	})
}

func (k *Keys) FindToken(ctx context.Context, hash credential.Hash) (credential.Token, error) {
	var (
		token                credential.Token
		scope, metadata      string
		createdAt, expiresAt int64
		verifier             []byte
	)
	key, err := scanKey(prefixed{k.db.lookup.QueryRowContext(ctx, tokenByHash, hash[:]),
		[]any{&scope, &metadata, &createdAt, &expiresAt, &verifier}})
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			return credential.Token{}, credential.ErrTokenNotFound
		}
		return credential.Token{}, storeError("find a token", err)
	}
	if err := json.Unmarshal([]byte(scope), &token.Scope); err != nil {
		return credential.Token{}, storeError("find a token", errors.Join(errors.New("its scope is invalid"), err))
	}
	if metadata != "" {
		token.Metadata = json.RawMessage(metadata)
	}
	token.Hash, token.Key, token.Verifier = hash, key, verifier
	token.CreatedAt, token.ExpiresAt = time.UnixMilli(createdAt).UTC(), time.UnixMilli(expiresAt).UTC()
	return token, nil
}

// deleteBatch is the maximum number of records that one transaction deletes, so that a large sweep
// does not delay other writers.
const deleteBatch = 500

func (k *Keys) DeleteTokens(ctx context.Context, before time.Time) error {
	for {
		var deleted int64
		err := k.db.writeAnyway(ctx, "delete tokens", func(ctx context.Context, tx *transaction) error {
			done, err := tx.ExecContext(ctx, `delete from client_token where hash in
				(select hash from client_token where expires_at < ? order by expires_at limit ?)`, millis(before), deleteBatch)
			if err != nil {
				return err
			}
			deleted, err = done.RowsAffected()
			return err
		})
		if err != nil || deleted < deleteBatch {
			return err
		}
	}
}

// prefixed scans the first columns of a row, and leaves the rest to its caller.
type prefixed struct {
	row
	first []any
}

func (p prefixed) Scan(into ...any) error { return p.row.Scan(append(p.first, into...)...) }
