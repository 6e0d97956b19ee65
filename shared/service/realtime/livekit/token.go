package livekit

import (
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cutroom/shared/domain/fault"
)

type Grant struct {
	Room     string
	Identity string
	Publish  bool
	// Expires is when the token can no longer be used to join.
	Expires time.Time
}

// Tokens creates and reads room tokens. They are JWTs with LiveKit's claims, but opaque to clients.
type Tokens struct {
	secret []byte
	now    func() time.Time
}

func NewTokens(secret []byte, now func() time.Time) *Tokens { return &Tokens{secret, now} }

// maxToken is the maximum size of a token in bytes. Make returns about 450 bytes.
const maxToken = 1 << 10

// issuer distinguishes these tokens from other tokens with the same secret.
const issuer = "cutroom rooms"

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

func (t *Tokens) Make(g Grant) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: issuer, Subject: g.Identity, ExpiresAt: jwt.NewNumericDate(g.Expires),
			NotBefore: jwt.NewNumericDate(t.now().Add(-time.Minute)), // some clients compare it with their clocks
		},
		Video: videoGrant{Room: g.Room, RoomJoin: true, CanPublish: g.Publish, CanSubscribe: true},
	}).SignedString(t.secret)
}

// Read returns a token's grant and whether the token has expired.
//
// Errors: fault.Unauthorized.
func (t *Tokens) Read(token string) (grant Grant, expired bool, err error) {
	// The library decodes a token's header before it checks the signature.
	if len(token) > maxToken {
		return Grant{}, false, fault.New(fault.Unauthorized, "The token is not valid.")
	}
	var c claims
	_, err = jwt.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return t.secret, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithIssuer(issuer),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(t.now))
	// An expired token has a valid signature, because the library checks the signature before the claims.
	expired = errors.Is(err, jwt.ErrTokenExpired)
	if err != nil && !expired || c.Issuer != issuer || c.ExpiresAt == nil {
		return Grant{}, false, fault.New(fault.Unauthorized, "The token is not valid.")
	}
	return Grant{
		Room: c.Video.Room, Identity: c.Subject, Publish: c.Video.CanPublish, Expires: c.ExpiresAt.Time,
	}, expired, nil
}
