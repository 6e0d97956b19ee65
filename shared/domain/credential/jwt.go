package credential

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cutroom/shared/domain/ascii"
	"cutroom/shared/domain/fault"
)

// A client token is also issued as a JSON Web Token (RFC 7519), because some clients accept nothing else, and others
// verify it themselves with the service's key set. The JWT is another format of the same token: its "jti" is the hash
// that identifies the record. In this service, scope, expiry and the validity of the permanent key depend only on the
// record. The claims repeat these values for clients that read them.
//
// The record keeps the public key that verifies the JWT. Authentication therefore needs no secret, someone who can
// read the records cannot forge a token, and a token outlives a change of the service's key. In tokens of version
// 0.1.0, each JWT had its own key, which is in no key set.
const (
	// JWTIssuer is also the audience.
	JWTIssuer = "cutroom"
	// maxJWT is in bytes. A token with the largest scope is smaller.
	maxJWT = 32 << 10
)

// Claims describe a credential, under the names that SDKs read. Permissions and Constraints are the same as in the
// response that issues a token.
type Claims struct {
	jwt.RegisteredClaims
	// Models and Origins are absent if the credential allows all.
	Models      []string        `json:"models,omitempty"`
	Origins     []string        `json:"origins,omitempty"`
	Key         string          `json:"parent_api_key_id"`
	Attribution json.RawMessage `json:"attribution,omitempty"`
	Permissions *Permissions    `json:"permissions"`
	Constraints *Constraints    `json:"constraints"`
}

type Permissions struct {
	Models  []string `json:"models,omitempty"`
	Origins []string `json:"origins,omitempty"`
}

type Constraints struct {
	Realtime struct {
		MaxSessionDuration int64 `json:"maxSessionDuration"` // in seconds
	} `json:"realtime"`
}

// newClaims rounds times down to whole seconds, because many clients cannot read fractions. A JWT therefore never
// expires later than its token.
func newClaims(key Key, scope Scope, created, expires time.Time) Claims {
	claims := Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: JWTIssuer, Audience: jwt.ClaimStrings{JWTIssuer}, Subject: key.Account, IssuedAt: jwt.NewNumericDate(created),
		},
		Models: scope.Models, Origins: scope.Origins, Key: key.ID,
	}
	if !expires.IsZero() {
		claims.ExpiresAt = jwt.NewNumericDate(expires)
	}
	if len(scope.Models)+len(scope.Origins) > 0 {
		claims.Permissions = &Permissions{scope.Models, scope.Origins}
	}
	if scope.MaxSession > 0 {
		claims.Constraints = &Constraints{}
		claims.Constraints.Realtime.MaxSessionDuration = int64(scope.MaxSession / time.Second)
	}
	return claims
}

// Claims returns the claims of the token's JWT.
func (t Token) Claims() Claims {
	claims := newClaims(t.Key, t.Scope, t.CreatedAt, t.ExpiresAt)
	claims.ID = t.Hash.String()
	var metadata struct{ Attribution json.RawMessage }
	if t.Scope.Label != "" && json.Unmarshal(t.Metadata, &metadata) == nil {
		claims.Attribution = metadata.Attribution
	}
	return claims
}

// Claims returns the claims of the caller's client token or permanent key.
func (p Principal) Claims() Claims {
	if p.Token != nil {
		return p.Token.Claims()
	}
	return newClaims(p.Key, Scope{Models: p.Key.Limits.Models}, p.Key.CreatedAt, p.Key.ExpiresAt)
}

func signToken(token Token, signer ed25519.PrivateKey) (string, error) {
	unsigned := jwt.NewWithClaims(jwt.SigningMethodEdDSA, token.Claims())
	unsigned.Header["kid"] = newJWK(token.Verifier).ID
	signed, err := unsigned.SignedString(signer)
	if err != nil {
		return "", fmt.Errorf("credential: sign a token: %w", err)
	}
	return signed, nil
}

// isJWT reports whether a secret may be a JWT. It allows only the characters of a JWT, because the
// base64 decoder ignores line breaks, and each JWT must have only one valid spelling.
func isJWT(secret string) bool {
	return len(secret) <= maxJWT && strings.HasPrefix(secret, "eyJ") && strings.Count(secret, ".") == 2 &&
		ascii.Only(secret, "._-")
}

var errForged = errors.New("the JWT was not signed by this service")

// maxJWTBrackets limits the opening brackets in a JWT's claims, because the JSON decoder uses 30
// bytes for each. Valid scopes need far fewer.
const maxJWTBrackets = 1000

// hashOfJWT returns the token hash from the base64-encoded claims of a JWT.
func hashOfJWT(claims string) (hash Hash, ok bool) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(claims)
	if err != nil || bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > maxJWTBrackets {
		return hash, false
	}
	var named struct {
		ID string `json:"jti"` // all other claims are ignored
	}
	if json.Unmarshal(text, &named) != nil {
		return hash, false
	}
	id, err := hex.DecodeString(named.ID)
	return hash, err == nil && len(id) == len(hash) && copy(hash[:], id) == len(hash)
}

func jwtHeader(keyID string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA","kid":"` + keyID + `","typ":"JWT"}`))
}

// findJWT returns a JWT's token with a single read. The claims identify the record that holds the public key, so they
// are read before the signature is verified. To reduce the attack surface, only the token hash is decoded, and the
// header must equal the header that this service makes for the token.
//
// Errors: fault.NotFound if the JWT is malformed or forged, or its token is unknown.
func findJWT(ctx context.Context, store TokenStore, text string) (Token, error) {
	forged := fault.Wrap(errForged, fault.NotFound, "%s", ErrTokenNotFound.Message)
	end := strings.LastIndexByte(text, '.')
	signed := text[:end] // a JWT has two dots, so end is not -1
	header, claims, _ := strings.Cut(signed, ".")
	hash, ok := hashOfJWT(claims)
	signature, err := base64.RawURLEncoding.Strict().DecodeString(text[end+1:])
	if !ok || err != nil {
		return Token{}, forged
	}
	token, err := store.FindToken(ctx, hash)
	if err != nil {
		return Token{}, err
	}
	made := jwtHeader(newJWK(token.Verifier).ID)
	old := jwtHeader("tok_" + hash.String()[:12]) // of version 0.1.0
	if len(token.Verifier) != ed25519.PublicKeySize || header != made && header != old ||
		!ed25519.Verify(token.Verifier, []byte(signed), signature) {
		return Token{}, forged
	}
	return token, nil
}
