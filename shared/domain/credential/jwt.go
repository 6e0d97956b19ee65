package credential

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cutroom/shared/domain/ascii"
	"cutroom/shared/domain/fault"
)

// A client token is also issued as a JSON Web Token (RFC 7519), because some
// clients accept nothing else. The JWT is another form of the token: its "jti" is
// the hash that the record is found by, and only the record says what the token may
// do, when it expires, and whether its permanent key still works. The claims repeat
// that for clients that read them.
//
// Each JWT is signed with a key pair of its own. The private key is discarded after
// signing; the record keeps the public one. So no program that verifies needs a
// signing secret, and nobody who reads the records can forge a token.
const (
	// jwtIssuer is the "iss" of every JWT.
	jwtIssuer = "cutroom"
	// maxJWT is the size limit of a JWT in bytes, more than the largest scope
	// needs.
	maxJWT = 16 << 10
)

// jwtClaims are the claims of a client token's JWT. They have the names of the
// response that issues the token.
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
		// MaxSessionDuration is in seconds.
		MaxSessionDuration int64 `json:"maxSessionDuration"`
	} `json:"realtime"`
}

// jwtKeyID returns the id of the key that signs a token's JWT.
func jwtKeyID(hash Hash) string { return "tok_" + hash.String()[:12] }

// signToken returns the token as a JWT. Its times are whole seconds, because many
// clients read no others; it never expires later than the token.
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

// isJWT reports whether a secret may be a JWT, which findJWT then verifies. Other
// characters are refused here, because the base64 decoder ignores line ends: each
// JWT has one spelling.
func isJWT(secret string) bool {
	return len(secret) <= maxJWT && strings.HasPrefix(secret, "eyJ") && strings.Count(secret, ".") == 2 &&
		ascii.Only(secret, "._-")
}

var errForged = errors.New("the JWT is not one that this service has signed")

// findJWT returns the token of a JWT. It takes one read, as for the token's secret.
// The algorithm is fixed, and the JWT's claims are used only to find the record,
// whose key then verifies it.
//
// Errors: fault.NotFound if the JWT is malformed, forged, or of an unknown token;
// those of the store.
func findJWT(ctx context.Context, store TokenStore, text string) (Token, error) {
	var token Token
	var failed error
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithStrictDecoding(),
		// The record says when the token expires, to the millisecond.
		jwt.WithoutClaimsValidation(),
	)
	_, err := parser.ParseWithClaims(text, &jwtClaims{}, func(parsed *jwt.Token) (any, error) {
		claims, _ := parsed.Claims.(*jwtClaims)
		var hash Hash
		if id, err := hex.DecodeString(claims.ID); err != nil || copy(hash[:], id) != len(hash) || len(id) != len(hash) {
			return nil, errForged
		}
		if parsed.Header["kid"] != jwtKeyID(hash) {
			return nil, errForged
		}
		if token, failed = store.FindToken(ctx, hash); failed != nil {
			return nil, failed
		}
		if len(token.Verifier) != ed25519.PublicKeySize {
			return nil, errForged
		}
		return token.Verifier, nil
	})
	switch {
	case failed != nil:
		return Token{}, failed
	case err != nil:
		return Token{}, fault.Wrap(errForged, fault.NotFound, "%s", ErrTokenNotFound.Message)
	}
	return token, nil
}
