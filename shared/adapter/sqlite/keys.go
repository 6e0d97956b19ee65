package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
)

type Keys struct{ db *DB }

var _ credential.Store = (*Keys)(nil)

const (
	keyColumns = "hash, id, account, tier, label, admin, created_at, expires_at, revoked_at, limits"
	keyByHash  = "select " + keyColumns + " from api_key where hash = ?"
)

func (k *Keys) CreateKey(ctx context.Context, from audit.Origin, key credential.Key) error {
	created, err := credential.CreationEntry(from, key)
	if err != nil {
		return storeError("create a key", err)
	}
	// The audit entry for revoking the key has the same size, so it is counted in advance.
	if err := k.db.admitBy(ctx, from, key.Account, 3*len(created.After)); err != nil {
		return err
	}
	return k.db.write(ctx, "create a key", func(ctx context.Context, tx *transaction) error {
		if _, err := accountOf(ctx, tx, from); err != nil {
			return err
		}
		limits, err := encode(key.Limits)
		if err != nil {
			return err
		}
		made, err := tx.ExecContext(ctx, `insert into api_key (`+keyColumns+`) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			on conflict do nothing`,
			key.Hash[:], key.ID, key.Account, key.Tier, key.Label, key.Admin, millis(key.CreatedAt),
			optionalMillis(key.ExpiresAt), optionalMillis(key.RevokedAt), limits)
		if err != nil {
			return err
		}
		if n, err := affected(made, err); err != nil || n == 0 {
			return cmp.Or(err, error(credential.ErrKeyExists))
		}
		return k.db.note(ctx, tx, created)
	})
}

func (k *Keys) FindKey(ctx context.Context, hash credential.Hash) (credential.Key, error) {
	key, err := scanKey(k.db.lookup.QueryRowContext(ctx, keyByHash, hash[:]))
	return key, storeError("find a key", err)
}

func (k *Keys) ListKeys(ctx context.Context, account string) ([]credential.Key, error) {
	of := "="
	if account == "" {
		of = ">" // every account, but not forgotten keys
	}
	return listAll(ctx, k.db, account, "list keys", scanKey,
		"select "+keyColumns+" from api_key where account "+of+" ? order by created_at, id", account)
}

func (k *Keys) RevokeKey(ctx context.Context, from audit.Origin, id string) (credential.Key, error) {
	var key credential.Key
	err := k.db.writeAnyway(ctx, "revoke a key", func(ctx context.Context, tx *transaction) error {
		account, err := accountOf(ctx, tx, from)
		if err != nil {
			return err
		}
		key, err = scanKey(tx.QueryRowContext(ctx, "select "+keyColumns+` from api_key
			where id = ?1 and (?2 = '' or account = ?2)`, id, account))
		if err != nil || !key.RevokedAt.IsZero() {
			return err
		}
		revoked, err := credential.RevocationEntry(from, key)
		if err != nil {
			return err
		}
		key.RevokedAt = time.UnixMilli(millis(from.At)).UTC()
		if _, err := tx.ExecContext(ctx, "update api_key set revoked_at = ? where hash = ?", millis(from.At),
			key.Hash[:]); err != nil {
			return err
		}
		return k.db.note(ctx, tx, revoked)
	})
	return key, err
}

// accountOf returns the account of the acting key, or "" for the operator. Errors: fault.Unauthorized if the key does not
// work.
func accountOf(ctx context.Context, tx *transaction, from audit.Origin) (account string, err error) {
	if from.IsOperator() {
		return "", nil
	}
	err = tx.QueryRowContext(ctx, `select account from api_key where id = ? and revoked_at is null
		and (expires_at is null or expires_at > ?)`, from.By, millis(from.At)).Scan(&account)
	if errors.Is(err, sql.ErrNoRows) {
		return "", credential.KeyInvalid(from.By)
	}
	return account, err
}

func (k *Keys) ForgetKey(ctx context.Context, id string) error {
	return k.db.writeAnyway(ctx, "forget a key", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, "update api_key set account = '' where id = ?", id)
		return err
	})
}

func scanKey(r row) (credential.Key, error) {
	var (
		key                  credential.Key
		hash                 []byte
		createdAt            int64
		expiresAt, revokedAt sql.NullInt64
		limits               string
	)
	err := r.Scan(&hash, &key.ID, &key.Account, &key.Tier, &key.Label, &key.Admin, &createdAt, &expiresAt, &revokedAt,
		&limits)
	if errors.Is(err, sql.ErrNoRows) {
		return credential.Key{}, credential.ErrKeyNotFound
	}
	if err != nil {
		return credential.Key{}, err
	}
	copy(key.Hash[:], hash)
	key.CreatedAt = time.UnixMilli(createdAt).UTC()
	key.ExpiresAt, key.RevokedAt = timeOf(expiresAt), timeOf(revokedAt)
	if err := json.Unmarshal([]byte(limits), &key.Limits); err != nil {
		return credential.Key{}, errors.Join(errors.New("the limits of a key cannot be read"), err)
	}
	return key, nil
}
