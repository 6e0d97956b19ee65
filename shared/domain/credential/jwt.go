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

	"cutroom/shared/domain/fault"
)

// A client token is also issued as a JSON Web Token (RFC 7519), because some
// clients take no other. The JWT is another spelling of the token: its "jti" is
// the hash that the record is found by, and the record alone says how far the
// token reaches, when it ends, and whether its permanent key still works. The
// claims repeat that for clients that read them.
//
// Each JWT is signed with a key pair of its own. The private key is gone once it
// has signed; the record keeps the public one. So there is no signing secret to
// hand to every program that verifies, and who reads the records can forge
// nothing.
const (
	// jwtIssuer is the "iss" of every JWT.
	jwtIssuer = "cutroom"
	// maxJWT bounds a JWT that is looked at, in bytes: more than the largest scope
	// takes.
	maxJWT = 16 << 10
)

// jwtClaims are the claims of a client token's JWT. The names are those of the
// answer that the token is issued in.
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

// jwtKeyID names the key that a token's JWT is signed with.
func jwtKeyID(hash Hash) string { return "tok_" + hash.String()[:12] }

// signToken writes the token as a JWT. The times are whole seconds, as many
// clients read no others; the end is never later than the token's own.
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

// isJWT reports whether a secret may be a JWT; whether it is one is told by
// findJWT. Other characters are refused here, because the decoder of base64 passes
// over line ends: a JWT has one spelling.
func isJWT(secret string) bool {
	return len(secret) <= maxJWT && strings.HasPrefix(secret, "eyJ") && strings.Count(secret, ".") == 2 &&
		secretForm.MatchString(strings.ReplaceAll(secret, ".", ""))
}

var errForged = errors.New("the JWT is not one that this service has signed")

// findJWT gives the token that a JWT stands for: one read, as for its secret. The
// algorithm is fixed, and what a JWT claims of itself is believed only to look for
// the record whose key then verifies it.
//
// Errors: fault.NotFound when the JWT is malformed, forged, or of an unknown
// token; those of the store.
func findJWT(ctx context.Context, store TokenStore, text string) (Token, error) {
	var token Token
	var failed error
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithStrictDecoding(),
		// The end is the record's, to the millisecond.
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
		return Token{}, fault.Wrap(errForged, fault.NotFound, "Token not found.")
	}
	return token, nil
}
