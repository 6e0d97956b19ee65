// Package cursor makes the cursors of pages (docs/contract/media.md#pages): opaque,
// tamper-evident, bound to a list and an account, and good for any page size.
package cursor

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"cutroom/shared/domain/fault"
)

// Codec makes and reads the cursors of one list. A cursor holds the id that
// its page goes on from and a seal that only the holder of the secret can make.
type Codec struct {
	list   string
	secret func(context.Context) ([]byte, error)
}

// sealSize is the part of the HMAC-SHA256 that a cursor carries, in bytes.
const sealSize = 16

// New makes the cursors of a list, sealed with the secret.
func New(list string, secret []byte) Codec {
	return Codec{list, func(context.Context) ([]byte, error) { return secret, nil }}
}

// NewFrom makes the cursors of a list, sealed with a secret that is asked for
// whenever it is needed, which should cost nothing once it is known.
func NewFrom(list string, secret func(context.Context) ([]byte, error)) Codec {
	return Codec{list, secret}
}

// Make gives the cursor of the page that goes on from the id.
//
// Errors: that the secret cannot be had.
func (c Codec) Make(ctx context.Context, account, id string) (string, error) {
	secret, err := c.secret(ctx)
	if err != nil {
		return "", fmt.Errorf("cursor: the secret: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(append(c.seal(secret, account, id), id...)), nil
}

// Read gives the id in a cursor.
//
// Errors: fault.Invalid when the cursor was not made for this list and the
// account with this secret; that the secret cannot be had.
func (c Codec) Read(ctx context.Context, account, cursor string) (string, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil && len(sealed) > sealSize {
		id := string(sealed[sealSize:])
		// The cursor as a whole, so that it has one spelling: the decoder passes
		// over line ends, and over bits that belong to no byte.
		made, err := c.Make(ctx, account, id)
		if err != nil {
			return "", err
		}
		if hmac.Equal([]byte(cursor), []byte(made)) {
			return id, nil
		}
	}
	return "", fault.New(fault.Invalid, "The cursor is not one that this endpoint returned.")
}

func (c Codec) seal(secret []byte, account, id string) []byte {
	mac := hmac.New(sha256.New, secret)
	// The names of lists and accounts hold no NUL, so that no two seals are of
	// the same text.
	mac.Write([]byte(c.list + "\x00" + account + "\x00" + id))
	return mac.Sum(nil)[:sealSize]
}
