package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/idempotency"
)

type IdempotencyKeys struct{ db *DB }

var _ idempotency.Store = (*IdempotencyKeys)(nil)

func (db *DB) IdempotencyKeys() *IdempotencyKeys { return &IdempotencyKeys{db} }

// responseBytes is the size counted for a claim's response. Most responses are smaller.
const responseBytes = 1 << 10

const (
	// Each claim deletes several old claims, so no sweep is needed.
	forgetOldClaims = `delete from idempotency where (account, key) in
		(select account, key from idempotency where claimed_at <= ? order by claimed_at limit 10)`
	replaceClaim = `delete from idempotency where account = ? and key = ?
		and (claimed_at <= ? or resource = ? and settled = 0)`
	insertClaim = `insert into idempotency (account, key, fingerprint, resource, claimed_at) values (?, ?, ?, ?, ?)
		on conflict (account, key) do nothing`
	claimOfKey = "select fingerprint, resource, settled, answer, claimed_at from idempotency " +
		"where account = ? and key = ?"
	settleClaim = `update idempotency set settled = 1, answer = ?
		where account = ? and key = ? and resource = ? and settled = 0`
	withdrawClaim = "delete from idempotency where account = ? and key = ? and resource = ? and settled = 0"
	resourceOfKey = "select resource from idempotency where account = ? and key = ? and claimed_at > ?"
	// Update only claims newer than ?1, which the index by age finds. Older claims already count as abandoned.
	abandonClaims = "update idempotency set claimed_at = ?1 where claimed_at > ?1 and settled = 0"
)

func (k *IdempotencyKeys) Claim(ctx context.Context, c idempotency.Claim, instead string,
	now time.Time) (idempotency.Record, error) {
	var record idempotency.Record
	resource, err := k.Resource(ctx, c.Account, c.Key, now)
	if err == nil && resource == "" {
		err = k.db.admit(ctx, c.Account, len(c.Key)+responseBytes)
	}
	if err != nil {
		return record, err
	}
	err = k.db.write(ctx, "claim an idempotency key", func(ctx context.Context, tx *transaction) error {
		old := millis(now.Add(-idempotency.Age))
		if _, err := tx.ExecContext(ctx, forgetOldClaims, old); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, replaceClaim, c.Account, c.Key, old, instead); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, insertClaim, c.Account, c.Key, c.Fingerprint, c.Resource, millis(now)); err != nil {
			return err
		}
		var claimedAt int64
		err := tx.QueryRowContext(ctx, claimOfKey, c.Account, c.Key).
			Scan(&record.Fingerprint, &record.Resource, &record.Settled, &record.Response, &claimedAt)
		record.ClaimedAt = time.UnixMilli(claimedAt).UTC()
		return err
	})
	return record, err
}

func (k *IdempotencyKeys) Settle(ctx context.Context, c idempotency.Claim, answer []byte) error {
	return k.db.write(ctx, "settle an idempotency key", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, settleClaim, answer, c.Account, c.Key, c.Resource)
		return err
	})
}

func (k *IdempotencyKeys) Withdraw(ctx context.Context, c idempotency.Claim) error {
	return k.db.writeAnyway(ctx, "withdraw an idempotency key", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, withdrawClaim, c.Account, c.Key, c.Resource)
		return err
	})
}

func (k *IdempotencyKeys) Resource(
	ctx context.Context, account, key string, now time.Time,
) (resource string, err error) {
	err = k.db.lookup.QueryRowContext(ctx, resourceOfKey, account, key, millis(now.Add(-idempotency.Age))).Scan(&resource)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return resource, storeError("look up an idempotency key", err)
}

// Abandon marks every unsettled claim as abandoned. Call it at startup, when none of the claims' requests is running.
func (k *IdempotencyKeys) Abandon(ctx context.Context, now time.Time) error {
	return k.db.writeAnyway(ctx, "abandon claims of idempotency keys", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, abandonClaims, millis(now.Add(-idempotency.Abandoned)))
		return err
	})
}
