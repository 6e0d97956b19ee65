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

// Lifetimes and bounds of a client token (docs/contract/auth.md#client-tokens).
const (
	MinTokenLifetime     = time.Second
	MaxTokenLifetime     = time.Hour
	DefaultTokenLifetime = time.Minute
	// MaxTokenModels and MaxTokenOrigins bound the lists of a scope.
	MaxTokenModels  = 20
	MaxTokenOrigins = 20
	// MaxTokenMetadata bounds the metadata, in bytes of JSON.
	MaxTokenMetadata = 4096
)

// Scope is how far a client token reaches. The zero scope reaches everywhere
// that client tokens may go.
type Scope struct {
	// Models are the names that the token was made with; empty allows all.
	Models []string `json:"models,omitempty"`
	// Origins are the origins that browsers may call from; empty allows all.
	Origins []string `json:"origins,omitempty"`
	// MaxSession bounds a realtime session; 0 does not.
	MaxSession time.Duration `json:"max_session,omitempty"`
}

// Token is the record of a client token: a short-lived credential for browsers
// and mobile clients, minted from a permanent key and dead with it.
type Token struct {
	Hash Hash
	// Key is the permanent key that the token was minted from. A store fills it
	// from the key's own record, so that a revocation shows.
	Key       Key
	Scope     Scope
	Metadata  json.RawMessage
	CreatedAt time.Time
	ExpiresAt time.Time
	// Verifier is the public key that the token's JWT is verified with. It is nil
	// for a token that has no JWT.
	Verifier ed25519.PublicKey
}

// Issued is a new client token as its holder sends it. Either text is the same
// token: same scope, same end. Neither is kept.
type Issued struct {
	// Secret is "ek_" and 32 characters.
	Secret string
	// JWT is a signed JSON Web Token (RFC 7519), for clients that take no other.
	JWT string
}

// TokenStore keeps client tokens. The suite in credentialtest specifies it.
type TokenStore interface {
	// CreateToken keeps a new token; it works from then on. It need not
	// outlive a failure of the machine's power, as its holder can mint another
	// within a second; it does outlive a crash of the process.
	CreateToken(ctx context.Context, token Token) error
	// FindToken gives the token with the hash, with its key as it is now. A
	// token that has expired may be given until it is removed.
	//
	// Errors: fault.NotFound.
	FindToken(ctx context.Context, hash Hash) (Token, error)
}

// TokenRetention is what the removal of tokens that ended needs of a store, on one
// machine.
type TokenRetention interface {
	// DeleteTokens removes tokens that expired before the time.
	DeleteTokens(ctx context.Context, before time.Time) error
}

// NewToken draws a client token of the key: 192 random bits, and a key pair that
// signs the token's JWT and nothing else.
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
	issued.JWT, err = signToken(token, signer)
	return issued, token, err
}

// AllowsModel reports whether the scope reaches a model that has these names:
// a token made with an alias reaches the model, and the other way round.
func (s Scope) AllowsModel(names ...string) bool {
	return len(s.Models) == 0 || slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains(s.Models, name)
	})
}

// AllowsOrigin reports whether a request with this Origin may use the scope. A
// request without one is not from a browser, and may.
func (s Scope) AllowsOrigin(origin string) bool {
	return len(s.Origins) == 0 || origin == "" || slices.ContainsFunc(s.Origins, func(allowed string) bool {
		return CanonicalOrigin(allowed) == CanonicalOrigin(origin)
	})
}

// originForm is a full origin: a scheme, a host and, where it is not the
// scheme's own, a port (RFC 6454, section 6.2).
//
// It is compiled when it is first needed, as few functions need it.
var originForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z][0-9A-Za-z+.-]{0,31}://([0-9A-Za-z._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)
})

// IsOrigin reports whether the text is a full origin, such as
// https://app.example.com or http://localhost:3000.
func IsOrigin(text string) bool { return originForm().MatchString(text) }

// CanonicalOrigin writes an origin as browsers do: in lower case, without the
// port that the scheme has anyway.
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
