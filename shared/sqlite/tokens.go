package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"cutroom/shared/credential"
	"cutroom/shared/fault"
)

var _ credential.TokenStore = (*Keys)(nil)

// CreateToken keeps a new token.
func (k *Keys) CreateToken(ctx context.Context, token credential.Token) error {
	scope, err := json.Marshal(token.Scope)
	if err != nil {
		return storeError("create a token", err)
	}
	return k.db.write(ctx, "create a token", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `insert into client_token (hash, key_hash, scope, metadata, created_at, expires_at)
			values (?, ?, ?, ?, ?, ?)`,
			token.Hash[:], token.Key.Hash[:], string(scope), string(token.Metadata), millis(token.CreatedAt), millis(token.ExpiresAt))
		return err
	})
}

// FindToken gives the token with the hash and its key as it is now.
//
// Errors: fault.NotFound.
func (k *Keys) FindToken(ctx context.Context, hash credential.Hash) (credential.Token, error) {
	var (
		token                credential.Token
		scope, metadata      string
		createdAt, expiresAt int64
	)
	row := k.db.reader.QueryRowContext(ctx, `select scope, metadata, client_token.created_at, expires_at,
			api_key.hash, id, account, tier, label, api_key.created_at, revoked_at
		from client_token join api_key on api_key.hash = client_token.key_hash where client_token.hash = ?`, hash[:])
	key, err := scanKey(prefixed{row, []any{&scope, &metadata, &createdAt, &expiresAt}})
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			return credential.Token{}, fault.New(fault.NotFound, "Token not found.")
		}
		return credential.Token{}, storeError("find a token", err)
	}
	if err := json.Unmarshal([]byte(scope), &token.Scope); err != nil {
		return credential.Token{}, storeError("find a token", errors.Join(errors.New("its scope cannot be read"), err))
	}
	if metadata != "" {
		token.Metadata = json.RawMessage(metadata)
	}
	token.Hash, token.Key = hash, key
	token.CreatedAt, token.ExpiresAt = time.UnixMilli(createdAt).UTC(), time.UnixMilli(expiresAt).UTC()
	return token, nil
}

// DeleteTokens removes tokens that expired before the time.
func (k *Keys) DeleteTokens(ctx context.Context, before time.Time) error {
	return k.db.write(ctx, "delete tokens", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "delete from client_token where expires_at < ?", millis(before))
		return err
	})
}

// prefixed scans the first columns of a row for itself and the rest for its
// caller.
type prefixed struct {
	row
	first []any
}

func (p prefixed) Scan(into ...any) error { return p.row.Scan(append(p.first, into...)...) }
