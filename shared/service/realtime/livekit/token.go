package livekit

import (
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cutroom/shared/domain/fault"
)

// Grant is what a token admits to.
type Grant struct {
	Room string
	// Identity names who joins, within the room.
	Identity string
	// Publish is true if they may send a camera.
	Publish bool
	// Expires is when the token stops admitting anybody who has not joined.
	Expires time.Time
}

// Tokens makes and reads the tokens that admit to rooms. They are JWTs with the claims
// that clients know from servers of rooms; to clients they are opaque.
type Tokens struct {
	secret []byte
	now    func() time.Time
}

// NewTokens returns tokens that are signed with the secret.
func NewTokens(secret []byte, now func() time.Time) *Tokens { return &Tokens{secret, now} }

// maxToken is the maximum size of a token in bytes. Those that Make returns have about 450.
const maxToken = 1 << 10

// issuer tells these tokens from others that are signed with the same secret.
const issuer = "cutroom rooms"

// claims are those of a token.
type claims struct {
	jwt.RegisteredClaims
	Video videoGrant `json:"video"`
}

type videoGrant struct {
	Room         string `json:"room"`
	RoomJoin     bool   `json:"roomJoin"`
	CanPublish   bool   `json:"canPublish"`
	CanSubscribe bool   `json:"canSubscribe"`
}

// Make returns the token of a grant.
//
// Errors: those of signing.
func (t *Tokens) Make(g Grant) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: issuer, Subject: g.Identity, ExpiresAt: jwt.NewNumericDate(g.Expires),
			NotBefore: jwt.NewNumericDate(t.now().Add(-time.Minute)), // clients may compare it with their clocks
		},
		Video: videoGrant{Room: g.Room, RoomJoin: true, CanPublish: g.Publish, CanSubscribe: true},
	}).SignedString(t.secret)
}

// Read returns the grant of a token. One that is past its end is read like any other,
// and reported as expired: it still serves those who have joined by it.
//
// Errors: fault.Unauthorized.
func (t *Tokens) Read(token string) (grant Grant, expired bool, err error) {
	// The library decodes the header of a token before it checks the signature.
	if len(token) > maxToken {
		return Grant{}, false, fault.New(fault.Unauthorized, "The token is not valid.")
	}
	var c claims
	_, err = jwt.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return t.secret, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithIssuer(issuer),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(t.now))
	// The library checks the signature before the claims.
	expired = errors.Is(err, jwt.ErrTokenExpired)
	if err != nil && !expired || c.Issuer != issuer || c.ExpiresAt == nil {
		return Grant{}, false, fault.New(fault.Unauthorized, "The token is not valid.")
	}
	return Grant{
		Room: c.Video.Room, Identity: c.Subject, Publish: c.Video.CanPublish, Expires: c.ExpiresAt.Time,
	}, expired, nil
}
