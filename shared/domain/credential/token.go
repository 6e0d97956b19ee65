package credential

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// These constants limit client tokens (docs/contract/auth.md#client-tokens).
const (
	MinTokenLifetime     = time.Second
	MaxTokenLifetime     = time.Hour
	DefaultTokenLifetime = time.Minute
	MaxTokenModels       = 20
	MaxTokenOrigins      = 20
	MaxTokenMetadata     = 4096 // in bytes of JSON
	MaxTokenLabel        = 128  // in bytes
)

// Scope restricts a client token. The zero scope allows everything that a client token may do.
type Scope struct {
	// Models lists the names given in the token request. Empty allows all models.
	Models []string `json:"models,omitempty"`
	// Origins lists the origins from which browsers may call. Empty allows all origins.
	Origins    []string      `json:"origins,omitempty"`
	MaxSession time.Duration `json:"max_session,omitempty"` // of a realtime session; 0 means no limit
	// Label is the label of the token's usage, made of Attribution.
	Label string `json:"label,omitempty"`
}

// Token is a short-lived credential for browsers and mobile clients. It is issued for a permanent
// key and revoked with it.
type Token struct {
	Hash Hash
	// Key is the key's current record, so that a revocation takes effect.
	Key       Key
	Scope     Scope
	Metadata  json.RawMessage
	CreatedAt time.Time
	ExpiresAt time.Time
	// Verifier is the public key that verifies the token's JWT, or nil if the token has no JWT.
	Verifier ed25519.PublicKey
}

// Issued is a new client token in its two formats. Neither of them is stored.
type Issued struct {
	Secret string // "ek_" followed by 32 characters
	JWT    string
}

// TokenStore keeps client tokens. The suite in credentialtest specifies it.
type TokenStore interface {
	// CreateToken stores a new token, which works immediately. The token must survive a process crash. It may be lost
	// in a power failure, because its holder can get another token within a second.
	CreateToken(ctx context.Context, token Token) error
	// FindToken returns the token with its current key. The token may have expired.
	//
	// Errors: fault.NotFound.
	FindToken(ctx context.Context, hash Hash) (Token, error)
}

type TokenRetention interface {
	DeleteTokens(ctx context.Context, before time.Time) error
}

// NewToken generates a client token with 192 random bits, and signs its JWT. The token does not outlive its key. If
// the request names no models, the token gets the key's models.
func NewToken(random io.Reader, signer ed25519.PrivateKey, key Key, request TokenRequest, now time.Time) (Issued, Token, error) {
	var bytes [24]byte
	if _, err := io.ReadFull(random, bytes[:]); err != nil {
		return Issued{}, Token{}, fmt.Errorf("credential: generate a token: %w", err)
	}
	issued := Issued{Secret: "ek_" + base64.RawURLEncoding.EncodeToString(bytes[:])}
	created := now.UTC().Truncate(time.Millisecond)
	token := Token{
		Hash: HashOf(issued.Secret), Key: key, Scope: request.Scope, Metadata: request.Metadata,
		CreatedAt: created, ExpiresAt: created.Add(request.Lifetime), Verifier: signer.Public().(ed25519.PublicKey),
	}
	if !key.ExpiresAt.IsZero() && token.ExpiresAt.After(key.ExpiresAt) {
		token.ExpiresAt = key.ExpiresAt
	}
	if len(token.Scope.Models) == 0 {
		token.Scope.Models = key.Limits.Models
	}
	jwt, err := signToken(token, signer)
	issued.JWT = jwt
	return issued, token, err
}

// AllowsModel reports whether the scope allows the model with these names. Allowing an alias allows
// its model, and allowing a model allows its aliases.
func (s Scope) AllowsModel(names ...string) bool { return allowsModel(s.Models, names) }

// AllowsOrigin allows requests without an Origin header, because they do not come from a browser.
func (s Scope) AllowsOrigin(origin string) bool {
	return len(s.Origins) == 0 || origin == "" || slices.ContainsFunc(s.Origins, func(allowed string) bool {
		return CanonicalOrigin(allowed) == CanonicalOrigin(origin)
	})
}

// originForm matches a complete origin (RFC 6454, section 6.2). It is compiled on first use,
// because few functions need it.
var originForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`^[A-Za-z][0-9A-Za-z+.-]{0,31}://([0-9A-Za-z._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)
})

func IsOrigin(text string) bool { return originForm().MatchString(text) }

// CanonicalOrigin returns an origin as browsers send it, in lower case and without the scheme's default port.
func CanonicalOrigin(origin string) string {
	origin = strings.ToLower(origin)
	switch {
	case strings.HasPrefix(origin, "https://"):
		return strings.TrimSuffix(origin, ":443")
	case strings.HasPrefix(origin, "http://"):
		return strings.TrimSuffix(origin, ":80")
	}
	return origin
}
