// Package credential holds the keys and tiers of accounts, and authenticates callers.
//
// A permanent key is "ck_" followed by 8 to 128 characters of [A-Za-z0-9_-] (docs/contract/auth.md#keys). It is
// shown only once, when it is created, and only its SHA-256 is stored. A key belongs to an account, which is an
// organization: all keys of an account see the same jobs and files and share the limits of its tier. A client
// token is issued for a permanent key. It is short-lived and has a narrower scope.
package credential

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"cutroom/shared/domain/ascii"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/fault"
)

type Hash [sha256.Size]byte

// HashOf hashes a secret. Secrets are long and random, so they need neither a salt nor a slow hash.
func HashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

func (h Hash) String() string { return hex.EncodeToString(h[:]) }
func KeyID(hash Hash) string  { return "key_" + hash.String()[:12] }

type Key struct {
	// ID identifies the key in records and on pages.
	ID      string
	Hash    Hash
	Account string
	Tier    string
	Label   string // chosen by the key's owner
	// Admin keys create and revoke keys of their account (see KeyService).
	Admin     bool
	CreatedAt time.Time
	// ExpiresAt is zero if the key never expires.
	ExpiresAt time.Time
	RevokedAt time.Time // zero until the key is revoked
	Limits    Limits
}

// Store keeps keys. The suite in credentialtest specifies it.
type Store interface {
	// CreateKey atomically stores a new key and its audit entry. The key works immediately. The same write checks that
	// the acting key works.
	//
	// Errors: fault.Conflict if a key with the same hash already exists; fault.Unauthorized if the acting key is
	// revoked, unknown or expired.
	CreateKey(ctx context.Context, from audit.Origin, key Key) error
	// FindKey returns the key with the hash, even if it was revoked.
	//
	// Errors: fault.NotFound.
	FindKey(ctx context.Context, hash Hash) (Key, error)
	// ListKeys returns the keys of an account, oldest first. An empty account means the keys of all accounts.
	ListKeys(ctx context.Context, account string) ([]Key, error)
	// RevokeKey marks the key as revoked, adds the audit entry, and returns the key. A key that was already
	// revoked stays unchanged, and no entry is added. The actor is another key of the account, or the operator.
	// The same write checks that the acting key works, so if two keys revoke each other, only one is revoked.
	//
	// Errors: fault.NotFound if the account has no such key; fault.Unauthorized if the acting key
	// is revoked, unknown or expired.
	RevokeKey(ctx context.Context, from audit.Origin, id string) (Key, error)
	// ForgetKey removes a key from all lists. The key must no longer work. Its secret stays invalid and cannot be
	// used for a new key.
	ForgetKey(ctx context.Context, id string) error
}

type Principal struct {
	// Key is the permanent key that was used or that the client token was issued for.
	Key   Key
	Tier  Tier
	Token *Token // nil if the call used a permanent key
}

func (p Principal) Account() string { return p.Key.Account }

// Scope returns the client token's scope. The limits of the token's key also apply (see AllowsModel).
func (p Principal) Scope() Scope {
	if p.Token == nil {
		return Scope{}
	}
	return p.Token.Scope
}

func isSecret(secret, prefix string) bool {
	random, found := strings.CutPrefix(secret, prefix)
	return found && len(random) >= 8 && len(random) <= 128 && ascii.Only(random, "_-")
}

func CheckSecret(secret string) error {
	if !isSecret(secret, "ck_") {
		return fault.New(fault.Invalid, "a key must be ck_ followed by 8 to 128 characters from A-Z, a-z, 0-9, '_' and '-'")
	}
	return nil
}

func CheckAccount(name string) error {
	if len(name) > 64 || !ascii.Only(name, "._-") || !ascii.IsAlphanumeric(name[0]) {
		return fault.New(fault.Invalid, "an account name must consist of 1 to 64 letters, digits, '.', '_' or '-', and start with a letter or digit")
	}
	return nil
}

// NewSecret generates a permanent key with 240 random bits.
func NewSecret(random io.Reader) (string, error) {
	var bytes [30]byte
	if _, err := io.ReadFull(random, bytes[:]); err != nil {
		return "", fmt.Errorf("credential: generate a key: %w", err)
	}
	return "ck_" + base64.RawURLEncoding.EncodeToString(bytes[:]), nil
}

// Errors: fault.Invalid.
func NewKey(secret, account, tier, label string, now time.Time) (Key, error) {
	if err := CheckSecret(secret); err != nil {
		return Key{}, err
	}
	if err := CheckAccount(account); err != nil {
		return Key{}, err
	}
	hash := HashOf(secret)
	return Key{
		ID: KeyID(hash), Hash: hash, Account: account, Tier: tier, Label: label,
		CreatedAt: now.UTC().Truncate(time.Millisecond),
	}, nil
}
