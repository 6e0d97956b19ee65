// Package credential holds accounts' keys and tiers, and tells who is calling.
//
// A permanent key is "ck_" and 8 to 128 of [A-Za-z0-9_-]
// (docs/contract/auth.md#keys). It is shown once, when it is made; only its SHA-256
// is kept. A key belongs to an account, which is an organisation: all keys of an
// account see the same jobs and files and share the limits of its tier. A client
// token is minted from a permanent key, for a short while and a narrower scope.
package credential

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"cutroom/shared/domain/fault"
)

// Hash is the SHA-256 of a secret: what is stored in its place.
type Hash [sha256.Size]byte

// HashOf hashes a secret. The secrets are random and long, so that a plain hash
// is enough.
func HashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

// String gives the hash in hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// KeyID gives the id of the key with the hash: "key_" and the first 12 hex digits.
func KeyID(hash Hash) string { return "key_" + hash.String()[:12] }

// Key is the record of a permanent key.
type Key struct {
	// ID names the key to people and in records, see KeyID.
	ID      string
	Hash    Hash
	Account string
	// Tier is the name of the account's tier for calls with this key.
	Tier string
	// Label is what its owner calls it.
	Label string
	// Admin keys make and revoke keys of their account, see KeyService.
	Admin     bool
	CreatedAt time.Time
	// RevokedAt is zero while the key works.
	RevokedAt time.Time
}

// Store keeps keys. The suite in credentialtest specifies it.
type Store interface {
	// CreateKey keeps a new key; it works from then on.
	//
	// Errors: fault.Conflict when a key with its hash exists.
	CreateKey(ctx context.Context, key Key) error
	// FindKey gives the key with the hash, revoked or not.
	//
	// Errors: fault.NotFound.
	FindKey(ctx context.Context, hash Hash) (Key, error)
	// ListKeys gives the keys of an account, or of all when it is empty, oldest
	// first.
	ListKeys(ctx context.Context, account string) ([]Key, error)
	// RevokeKey marks the key with the id as revoked at the time and gives it, for
	// another key of its account, whose id is by, or for the operator when that is
	// empty. One that is revoked already stays as it was. Whether by itself works is
	// decided with the write, so that of keys that revoke each other one stays.
	//
	// Errors: fault.NotFound, also for a key of another account; fault.Unauthorized
	// when by is revoked or unknown.
	RevokeKey(ctx context.Context, by, id string, at time.Time) (Key, error)
}

// Principal is who is calling.
type Principal struct {
	// Key is the permanent key that the call was made with, or that its client
	// token was minted from.
	Key  Key
	Tier Tier
	// Token is the client token that the call was made with, nil for a call
	// with a permanent key.
	Token *Token
}

// Account is whose jobs and files the caller sees.
func (p Principal) Account() string { return p.Key.Account }

// Scope is how far the caller reaches.
func (p Principal) Scope() Scope {
	if p.Token == nil {
		return Scope{}
	}
	return p.Token.Scope
}

// The forms leave out the lengths: to compile a counted repetition takes long,
// and a function does so at each start.
var (
	secretForm  = regexp.MustCompile(`^[0-9A-Za-z_-]+$`)
	accountForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]*$`)
)

// isSecret reports whether a secret is the prefix and 8 to 128 characters.
func isSecret(secret, prefix string) bool {
	random, found := strings.CutPrefix(secret, prefix)
	return found && len(random) >= 8 && len(random) <= 128 && secretForm.MatchString(random)
}

// CheckSecret returns an error when the secret is not of a permanent key's form.
func CheckSecret(secret string) error {
	if !isSecret(secret, "ck_") {
		return fault.New(fault.Invalid, "a key is ck_ and 8 to 128 of A-Z, a-z, 0-9, '_' and '-'")
	}
	return nil
}

// CheckAccount returns an error when the name is no account's name.
func CheckAccount(name string) error {
	if len(name) > 64 || !accountForm.MatchString(name) {
		return fault.New(fault.Invalid, "an account's name is 1 to 64 of letters, digits, '.', '_' and '-'")
	}
	return nil
}

// NewSecret draws a permanent key: 240 random bits.
func NewSecret(random io.Reader) (string, error) {
	var bytes [30]byte
	if _, err := io.ReadFull(random, bytes[:]); err != nil {
		return "", fmt.Errorf("credential: draw a key: %w", err)
	}
	return "ck_" + base64.RawURLEncoding.EncodeToString(bytes[:]), nil
}

// NewKey makes the record of a key from its secret.
//
// Errors: fault.Invalid when the secret or the account is malformed.
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
