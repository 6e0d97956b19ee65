package credential

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/fault"
)

const (
	// MaxKeys limits the active keys per account, and thus the damage that a runaway script can do.
	MaxKeys = 100
	// MaxListedKeys limits all keys per account. If there are more, the keys that stopped working
	// first are forgotten.
	MaxListedKeys = 1000
	MaxLabel      = 128 // in code points
)

// KeyService creates, lists and revokes an account's keys on behalf of its admin keys. An admin key cannot raise the
// account's limits, because a new key has the same tier as the key that creates it, does not outlive that key, and
// has no more permissions.
type KeyService struct {
	Store  Store
	Random io.Reader // must be cryptographically secure
	Now    func() time.Time
}

func (s *KeyService) List(ctx context.Context, account string) ([]Key, error) {
	keys, err := s.Store.ListKeys(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("credential: list keys: %w", err)
	}
	if excess := len(keys) - MaxListedKeys; excess > 0 {
		keys = slices.Delete(endedFirst(keys), 0, excess)
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
	return keys, nil
}

// KeyRequest describes the key to create. Empty fields are filled from the creating key.
type KeyRequest struct {
	Label     string
	Admin     bool
	ExpiresAt time.Time `json:",omitzero"`
	Limits    Limits    `json:",omitzero"`
}

// endedFirst sorts keys by the time when they stop working. Keys that never stop come last.
func endedFirst(keys []Key) []Key {
	end := func(k Key) int64 {
		if k.RevokedAt.IsZero() && k.ExpiresAt.IsZero() {
			return math.MaxInt64
		}
		return cmp.Or(k.RevokedAt, k.ExpiresAt).UnixMilli()
	}
	slices.SortStableFunc(keys, func(a, b Key) int { return cmp.Compare(end(a), end(b)) })
	return keys
}

// Create creates a key for the admin key's account, and returns the new secret.
//
// Errors: fault.Forbidden if the key would outlive the admin key or have more permissions; fault.Unauthorized if the
// admin key has been revoked; fault.Conflict if the account has MaxKeys active keys.
func (s *KeyService) Create(ctx context.Context, by Key, requestID string, request KeyRequest) (secret string,
	key Key, err error) {
	if request, err = request.inherit(by); err != nil {
		return "", Key{}, err
	}
	if err := s.stillWorks(ctx, by); err != nil {
		return "", Key{}, err
	}
	keys, err := s.Store.ListKeys(ctx, by.Account)
	if err != nil {
		return "", Key{}, fmt.Errorf("credential: count keys: %w", err)
	}
	now := s.Now()
	for _, old := range endedFirst(keys)[:min(max(0, len(keys)+1-MaxListedKeys), MaxKeys)] {
		if old.Works(now) {
			break
		}
		if err := s.Store.ForgetKey(ctx, old.ID); err != nil {
			return "", Key{}, fmt.Errorf("credential: forget a key: %w", err)
		}
	}
	working := slices.DeleteFunc(keys, func(k Key) bool { return !k.Works(now) })
	if len(working) >= MaxKeys {
		return "", Key{}, fault.New(fault.Conflict, "The account has reached its limit of %d keys. Revoke a key first.",
			len(working))
	}
	if secret, err = NewSecret(s.Random); err != nil {
		return "", Key{}, err
	}
	if key, err = NewKey(secret, by.Account, by.Tier, request.Label, now); err != nil {
		return "", Key{}, err
	}
	key.Admin, key.ExpiresAt, key.Limits = request.Admin, request.ExpiresAt, request.Limits
	from := audit.Origin{By: by.ID, At: key.CreatedAt, RequestID: requestID}
	err = s.Store.CreateKey(ctx, from, key)
	if fault.Is(err, fault.Unauthorized) {
		return "", Key{}, errInvalid()
	}
	if err != nil {
		return "", Key{}, fmt.Errorf("credential: store a key: %w", err)
	}
	return secret, key, nil
}

// Revoke revokes a key. Revoking a revoked key has no effect.
//
// Errors: fault.NotFound; fault.Forbidden if the key outlives the admin key or has more permissions;
// fault.Unauthorized if the admin key has been revoked; fault.Conflict if an admin key revokes itself, so that an
// account cannot lose its last admin key.
func (s *KeyService) Revoke(ctx context.Context, by Key, requestID, id string) error {
	switch {
	case len(id) != len(by.ID):
		// All key ids have the same length. Check it here, because stores limit the length of ids.
		return ErrKeyNotFound
	case id == by.ID:
		return fault.New(fault.Conflict, "A key cannot revoke itself. Use another admin key of the account.")
	}
	keys, err := s.Store.ListKeys(ctx, by.Account)
	if err != nil {
		return fmt.Errorf("credential: find the key to revoke: %w", err)
	}
	for _, key := range keys {
		if key.ID != id {
			continue
		}
		if err := by.CheckManages(key); err != nil {
			return err
		}
	}
	_, err = s.Store.RevokeKey(ctx, audit.Origin{By: by.ID, At: s.Now().UTC(), RequestID: requestID}, id)
	if fault.Is(err, fault.Unauthorized) {
		return errInvalid()
	}
	if err != nil {
		return fmt.Errorf("credential: revoke a key: %w", err)
	}
	return nil
}

// stillWorks reads the store rather than the Authenticator's cache, because a revoked key must not
// create a successor within CacheAge.
func (s *KeyService) stillWorks(ctx context.Context, by Key) error {
	known, err := s.Store.FindKey(ctx, by.Hash)
	if err != nil {
		return fmt.Errorf("credential: find the key of the call: %w", err)
	}
	if !known.Works(s.Now()) {
		return errInvalid()
	}
	return nil
}
