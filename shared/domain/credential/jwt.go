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

// A client token is also issued as a JSON Web Token (RFC 7519), because some clients accept nothing else. The JWT is
// another format of the same token: its "jti" is the hash that identifies the record. Scope, expiry and the validity
// of the permanent key depend only on the record. The claims repeat these values for clients that read them.
//
// Each JWT is signed with a new key pair. The private key is discarded after signing, and the record keeps the
// public key. Verification therefore needs no secret, and someone who can read the records cannot forge a token.
const (
	jwtIssuer = "cutroom"
	// maxJWT is in bytes. A token with the largest scope is smaller.
	maxJWT = 16 << 10
)

// The names are the same as in the response that issues the token.
type jwtClaims struct {
	jwt.RegisteredClaims
	Permissions *jwtPermissions `json:"permissions"`
	Constraints *jwtConstraints `json:"constraints"`
}

type jwtPermissions struct {
	Models  []string `json:"models,omitempty"`
	Origins []string `json:"origins,omitempty"`
}

type jwtConstraints struct {
	Realtime struct {
		MaxSessionDuration int64 `json:"maxSessionDuration"` // in seconds
	} `json:"realtime"`
}

func jwtKeyID(hash Hash) string { return "tok_" + hash.String()[:12] }

// signToken returns the token as a JWT. Its times are rounded to whole seconds, because many
// clients cannot read fractions. The JWT never expires later than the token.
func signToken(token Token, signer ed25519.PrivateKey) (string, error) {
	claims := jwtClaims{RegisteredClaims: jwt.RegisteredClaims{
		Issuer: jwtIssuer, ID: token.Hash.String(),
		IssuedAt: jwt.NewNumericDate(token.CreatedAt), ExpiresAt: jwt.NewNumericDate(token.ExpiresAt),
	}}
	if len(token.Scope.Models)+len(token.Scope.Origins) > 0 {
		claims.Permissions = &jwtPermissions{token.Scope.Models, token.Scope.Origins}
	}
	if token.Scope.MaxSession > 0 {
		claims.Constraints = &jwtConstraints{}
		claims.Constraints.Realtime.MaxSessionDuration = int64(token.Scope.MaxSession / time.Second)
	}
	unsigned := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	unsigned.Header["kid"] = jwtKeyID(token.Hash)
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

func jwtHeader(hash Hash) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA","kid":"` + jwtKeyID(hash) + `","typ":"JWT"}`))
}

// findJWT returns a JWT's token with a single read. The claims identify the record that holds the public key, so they
// are read before the signature is verified. To reduce the attack surface, the header must be one that this service
// makes, and only the token hash is decoded.
//
// Errors: fault.NotFound if the JWT is malformed or forged, or its token is unknown.
func findJWT(ctx context.Context, store TokenStore, text string) (Token, error) {
	forged := fault.Wrap(errForged, fault.NotFound, "%s", ErrTokenNotFound.Message)
	end := strings.LastIndexByte(text, '.')
	signed := text[:end] // a JWT has two dots, so end is not -1
	header, claims, _ := strings.Cut(signed, ".")
	hash, ok := hashOfJWT(claims)
	signature, err := base64.RawURLEncoding.Strict().DecodeString(text[end+1:])
	if !ok || err != nil || header != jwtHeader(hash) {
		return Token{}, forged
	}
	token, err := store.FindToken(ctx, hash)
	if err != nil {
		return Token{}, err
	}
	if len(token.Verifier) != ed25519.PublicKeySize || !ed25519.Verify(token.Verifier, []byte(signed), signature) {
		return Token{}, forged
	}
	return token, nil
}
