package credential

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cutroom/shared/fault"
)

const (
	// CacheAge is how long an answer of the store is trusted: the most time
	// that passes until a revoked key stops working, or a new one that was
	// tried too early begins to work.
	CacheAge = 5 * time.Second
	// cacheSize bounds the memory that callers with made-up keys can take.
	cacheSize = 10_000
)

// Authenticator tells who is calling by the key that the call carries. An
// authentication is at most one read of the store, cached for CacheAge.
type Authenticator struct {
	store Store
	tiers Tiers
	now   func() time.Time

	mu    sync.Mutex
	cache map[Hash]cached
}

type cached struct {
	key   Key // of the zero value when there is none
	until time.Time
}

// NewAuthenticator makes an authenticator over a store and a table of tiers.
func NewAuthenticator(store Store, tiers Tiers, now func() time.Time) *Authenticator {
	return &Authenticator{store: store, tiers: tiers, now: now, cache: map[Hash]cached{}}
}

// Authenticate tells who holds the secret.
//
// Errors: fault.Unauthorized when the secret is missing, malformed, unknown or
// revoked.
func (a *Authenticator) Authenticate(ctx context.Context, secret string) (Principal, error) {
	if secret == "" {
		return Principal{}, fault.New(fault.Unauthorized, "An API key is required in the header x-api-key.")
	}
	invalid := fault.New(fault.Unauthorized, "The API key is not valid.")
	if CheckSecret(secret) != nil {
		return Principal{}, invalid
	}
	key, err := a.find(ctx, HashOf(secret))
	if err != nil {
		return Principal{}, err
	}
	if key.ID == "" || !key.RevokedAt.IsZero() {
		return Principal{}, invalid
	}
	return Principal{Account: key.Account, Key: key.ID, Tier: a.tiers.Find(key.Tier)}, nil
}

// find gives the key with the hash, or the zero key when there is none.
func (a *Authenticator) find(ctx context.Context, hash Hash) (Key, error) {
	now := a.now()
	a.mu.Lock()
	entry, ok := a.cache[hash]
	a.mu.Unlock()
	if ok && now.Before(entry.until) {
		return entry.key, nil
	}
	key, err := a.store.FindKey(ctx, hash)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Key{}, fmt.Errorf("credential: find a key: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.cache) >= cacheSize {
		// Rare, and every entry is one read away: start over.
		clear(a.cache)
	}
	a.cache[hash] = cached{key, now.Add(CacheAge)}
	return key, nil
}
