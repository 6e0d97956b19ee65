// Package cursor implements the cursors of pages (docs/contract/media.md#pages): opaque,
// tamper-evident, valid only for a list and an account, and valid for any page size.
package cursor

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"cutroom/shared/domain/fault"
)

// Codec encodes and decodes the cursors of one list. A cursor holds the id that its
// page continues from, and a seal that only a holder of the secret can make.
type Codec struct {
	list   string
	secret func(context.Context) ([]byte, error)
}

// sealSize is the length of the HMAC-SHA256 in a cursor, in bytes.
const sealSize = 16

// New returns the codec of a list with a fixed secret.
func New(list string, secret []byte) Codec {
	return Codec{list, func(context.Context) ([]byte, error) { return secret, nil }}
}

// NewFrom returns the codec of a list with a secret that it fetches for every cursor. The function
// should cache it.
func NewFrom(list string, secret func(context.Context) ([]byte, error)) Codec {
	return Codec{list, secret}
}

// Make returns the cursor of the page that continues from the id.
func (c Codec) Make(ctx context.Context, account, id string) (string, error) {
	secret, err := c.secret(ctx)
	if err != nil {
		return "", fmt.Errorf("cursor: the secret: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(append(c.seal(secret, account, id), id...)), nil
}

// Read returns the id in a cursor.
//
// Errors: fault.Invalid if the cursor was not made for this list and account with
// this secret; the secret cannot be fetched.
func (c Codec) Read(ctx context.Context, account, cursor string) (string, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil && len(sealed) > sealSize {
		id := string(sealed[sealSize:])
		// Compare the whole cursor, so that only one spelling is valid: the decoder
		// ignores line ends, and surplus bits in the last character.
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
	// Names of lists and accounts hold no NUL, so that no two seals cover the same text.
	mac.Write([]byte(c.list + "\x00" + account + "\x00" + id))
	return mac.Sum(nil)[:sealSize]
}
