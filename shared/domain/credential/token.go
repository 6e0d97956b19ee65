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

// The limits of a client token (docs/contract/auth.md#client-tokens).
const (
	MinTokenLifetime     = time.Second
	MaxTokenLifetime     = time.Hour
	DefaultTokenLifetime = time.Minute
	// MaxTokenModels and MaxTokenOrigins limit the lists of a scope.
	MaxTokenModels  = 20
	MaxTokenOrigins = 20
	// MaxTokenMetadata limits the metadata, in bytes of JSON.
	MaxTokenMetadata = 4096
)

// Scope limits a client token. The zero scope allows everything that client tokens may do.
type Scope struct {
	// Models are the names that the token was issued with; empty allows all.
	Models []string `json:"models,omitempty"`
	// Origins are the origins that browsers may call from; empty allows all.
	Origins []string `json:"origins,omitempty"`
	// MaxSession limits the length of a realtime session; 0 means no limit.
	MaxSession time.Duration `json:"max_session,omitempty"`
}

// Token is the record of a client token: a short-lived credential for browsers and
// mobile clients, issued for a permanent key and revoked with it.
type Token struct {
	Hash Hash
	// Key is the permanent key that the token was issued for. A store reads the key's record, so
	// that a revocation shows.
	Key       Key
	Scope     Scope
	Metadata  json.RawMessage
	CreatedAt time.Time
	ExpiresAt time.Time
	// Verifier is the public key for the token's JWT, or nil without a JWT.
	Verifier ed25519.PublicKey
}

// Issued is a new client token in its two forms, which have the same scope and expiry. Neither is stored.
type Issued struct {
	// Secret is "ek_" and 32 characters.
	Secret string
	// JWT is a signed JSON Web Token (RFC 7519), for clients that accept nothing else.
	JWT string
}

// TokenStore keeps client tokens. The suite in credentialtest specifies it.
type TokenStore interface {
	// CreateToken stores a new token, which works from then on. It must survive a crash of the process. It
	// may be lost in a power failure, because its holder can get another within a second.
	CreateToken(ctx context.Context, token Token) error
	// FindToken returns the token with the hash and its current key. It may return an expired token
	// until that is deleted.
	//
	// Errors: fault.NotFound.
	FindToken(ctx context.Context, hash Hash) (Token, error)
}

type TokenRetention interface {
	// DeleteTokens deletes tokens that expired before the time.
	DeleteTokens(ctx context.Context, before time.Time) error
}

// NewToken generates a client token for the key: 192 random bits, and a key pair for the token's
// JWT. The token does not outlive its key, and has the key's models if the request names none.
func NewToken(random io.Reader, key Key, request TokenRequest, now time.Time) (Issued, Token, error) {
	var bytes [24]byte
	var seed [ed25519.SeedSize]byte
	_, err := io.ReadFull(random, bytes[:])
	if err == nil {
		_, err = io.ReadFull(random, seed[:])
	}
	if err != nil {
		return Issued{}, Token{}, fmt.Errorf("credential: draw a token: %w", err)
	}
	issued := Issued{Secret: "ek_" + base64.RawURLEncoding.EncodeToString(bytes[:])}
	created, signer := now.UTC().Truncate(time.Millisecond), ed25519.NewKeyFromSeed(seed[:])
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
	issued.JWT, err = signToken(token, signer)
	return issued, token, err
}

// AllowsModel reports whether the scope allows a model with these names: a token
// issued with an alias allows the model, and the other way round.
func (s Scope) AllowsModel(names ...string) bool {
	return allowsModel(s.Models, names)
}

// AllowsOrigin reports whether a request with this Origin may use the scope. A
// request without one does not come from a browser, and may.
func (s Scope) AllowsOrigin(origin string) bool {
	return len(s.Origins) == 0 || origin == "" || slices.ContainsFunc(s.Origins, func(allowed string) bool {
		return CanonicalOrigin(allowed) == CanonicalOrigin(origin)
	})
}

// originForm matches a full origin: a scheme, a host and, unless it is the scheme's
// default, a port (RFC 6454, section 6.2).
//
// It is compiled on first use, because few functions need it.
var originForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`^[A-Za-z][0-9A-Za-z+.-]{0,31}://([0-9A-Za-z._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)
})

// IsOrigin reports whether the text is a full origin, such as
// https://app.example.com or http://localhost:3000.
func IsOrigin(text string) bool { return originForm().MatchString(text) }

// CanonicalOrigin returns an origin as browsers send it: in lower case, without the scheme's default port.
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
