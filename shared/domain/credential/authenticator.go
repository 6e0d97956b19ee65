package credential

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// CacheAge limits how long a revoked key keeps working. It also limits how long a new key may fail if it was
	// used before it was created. Both limits require a store whose reads see all earlier writes.
	CacheAge = 5 * time.Second
	// cacheSize limits the memory that callers with made-up keys can consume.
	cacheSize = 10_000
)

// Authenticator identifies callers by their key or client token. Each authentication reads the
// store at most once. The result is cached for CacheAge, but never beyond a token's expiry.
type Authenticator struct {
	store interface {
		Store
		TokenStore
	}
	tiers Tiers
	now   func() time.Time
	guard Guard

	mu    sync.Mutex
	cache map[Hash]cached
}

// cached is the store's entry for a secret: a key, a token with its key, or nothing.
type cached struct {
	key   Key
	token *Token
	read  time.Time
}

// works reports whether the key exists and has not been revoked. It does not check expiry.
func (c cached) works() bool { return c.key.ID != "" && c.key.RevokedAt.IsZero() }
func errInvalid() error      { return fault.New(fault.Unauthorized, "The API key is not valid.") }
func errExpired() error      { return fault.New(fault.Unauthorized, "The client token has expired.") }
func errKeyExpired() error   { return fault.New(fault.Unauthorized, "The API key has expired.") }

func NewAuthenticator(store interface {
	Store
	TokenStore
}, tiers Tiers, now func() time.Time) *Authenticator {
	return &Authenticator{store: store, tiers: tiers, now: now, cache: map[Hash]cached{}}
}

// Authenticate identifies the holder of a permanent key, or of a client token in either format.
//
// Errors: fault.Unauthorized if the secret or its key is missing, malformed, unknown, revoked or
// expired; fault.Limited if the caller has failed too often (see [Authenticator.Guard]).
func (a *Authenticator) Authenticate(ctx context.Context, secret string) (Principal, error) {
	if secret == "" {
		return Principal{}, fault.New(fault.Unauthorized, "An API key is required in the header x-api-key.")
	}
	return a.guarded(ctx, secret)
}

// isGuess reports whether an invalid secret may have been guessed. An expired secret was not guessed.
func (a *Authenticator) authenticate(
	ctx context.Context, secret string, hash Hash,
) (who Principal, isGuess bool, err error) {
	var ask ask
	switch {
	case isSecret(secret, "ek_"):
		ask = func(ctx context.Context) (cached, error) { return ofToken(a.store.FindToken(ctx, hash)) }
	case isJWT(secret):
		ask = func(ctx context.Context) (cached, error) { return ofToken(findJWT(ctx, a.store, secret)) }
	case CheckSecret(secret) == nil:
		ask = a.askKey(hash)
	default:
		return Principal{}, true, errInvalid()
	}
	now := a.now()
	entry, err := a.find(ctx, now, hash, ask)
	if err != nil {
		return Principal{}, false, err
	}
	if !entry.works() {
		return Principal{}, true, errInvalid()
	}
	if entry.token != nil && !now.Before(entry.token.ExpiresAt) {
		return Principal{}, false, errExpired()
	} else if entry.key.Expired(now) {
		return Principal{}, false, errKeyExpired()
	}
	return Principal{Key: entry.key, Tier: a.tiers.Find(entry.key.Tier), Token: entry.token}, false, nil
}

// Recheck checks a caller's key again during a long operation. A client token may have expired in the meantime.
//
// Errors: fault.Unauthorized if the key was revoked or has expired.
func (a *Authenticator) Recheck(ctx context.Context, who Principal) error {
	now := a.now()
	entry, err := a.find(ctx, now, who.Key.Hash, a.askKey(who.Key.Hash))
	if err != nil {
		return err
	}
	if !entry.works() {
		return errInvalid()
	}
	if entry.key.Expired(now) {
		return errKeyExpired()
	}
	return nil
}

// Renew checks a caller again during an operation that must end when the key or token becomes
// invalid, such as an upload.
//
// Errors: fault.Unauthorized if the key was revoked, or if the key or client token has expired.
func (a *Authenticator) Renew(ctx context.Context, who Principal) error {
	if who.Token != nil && !a.now().Before(who.Token.ExpiresAt) {
		return errExpired()
	}
	return a.Recheck(ctx, who)
}

// Holder returns the principal of a key, for work that continues after the call.
//
// Errors: fault.Unauthorized if the key was revoked, has expired or is unknown.
func (a *Authenticator) Holder(ctx context.Context, account, keyID string) (Principal, error) {
	keys, err := a.store.ListKeys(ctx, account)
	if err != nil {
		return Principal{}, fmt.Errorf("credential: find: %w", err)
	}
	i := slices.IndexFunc(keys, func(key Key) bool { return key.ID == keyID })
	if i < 0 || !keys[i].Works(a.now()) {
		return Principal{}, errInvalid()
	}
	return Principal{Key: keys[i], Tier: a.tiers.Find(keys[i].Tier)}, nil
}

type ask func(context.Context) (cached, error)

func (a *Authenticator) askKey(hash Hash) ask {
	return func(ctx context.Context) (cached, error) {
		key, err := a.store.FindKey(ctx, hash)
		return cached{key: key}, err
	}
}

func ofToken(token Token, err error) (cached, error) {
	if err != nil {
		return cached{}, err
	}
	return cached{key: token.Key, token: &token}, nil
}

func (a *Authenticator) find(ctx context.Context, now time.Time, hash Hash, ask ask) (cached, error) {
	a.mu.Lock()
	entry, ok := a.cache[hash]
	a.mu.Unlock()
	if age := now.Sub(entry.read); ok && age >= 0 && age < CacheAge {
		return entry, nil
	}
	entry, err := ask(ctx)
	entry.read = now
	if err != nil && !fault.Is(err, fault.NotFound) {
		return cached{}, fmt.Errorf("credential: find: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case entry.key.ID == "" && len(a.cache) >= cacheSize/2:
		// Callers with made-up keys must not evict the entries of others.
		return entry, nil
	case len(a.cache) >= cacheSize:
		// This is rare, and restoring an entry costs only one read.
		clear(a.cache)
	}
	a.cache[hash] = entry
	return entry, nil
}
