// Package cursor implements pagination cursors (docs/contract/media.md#pages). A cursor is opaque
// and tamper-evident, and is valid for only one list and account.
package cursor

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"cutroom/shared/domain/fault"
)

// Codec encodes and decodes the cursors of one list. A cursor contains a seal and the id of the item before the page.
type Codec struct {
	list   string
	secret func(context.Context) ([]byte, error)
}

const sealSize = 16 // the length of the truncated HMAC-SHA256 in bytes

func New(list string, secret []byte) Codec {
	return Codec{list, func(context.Context) ([]byte, error) { return secret, nil }}
}

// NewFrom returns a codec that calls the function secret for every cursor. The function should cache its result.
func NewFrom(list string, secret func(context.Context) ([]byte, error)) Codec {
	return Codec{list, secret}
}

// Make returns the cursor of the page that starts after the id.
func (c Codec) Make(ctx context.Context, account, id string) (string, error) {
	secret, err := c.secret(ctx)
	if err != nil {
		return "", fmt.Errorf("cursor: read the secret: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(append(c.seal(secret, account, id), id...)), nil
}

// Read returns the id in a cursor.
//
// Errors: fault.Invalid if Make did not return the cursor for this list and account with this
// secret; errors of the function that returns the secret.
func (c Codec) Read(ctx context.Context, account, cursor string) (string, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil && len(sealed) > sealSize {
		id := string(sealed[sealSize:])
		// The decoder ignores line breaks and surplus bits. Compare with a new cursor, so that only one spelling is
		// valid.
		made, err := c.Make(ctx, account, id)
		if err != nil {
			return "", err
		}
		if hmac.Equal([]byte(cursor), []byte(made)) {
			return id, nil
		}
	}
	return "", fault.New(fault.Invalid, "The cursor is invalid: this endpoint did not return it.")
}

func (c Codec) seal(secret []byte, account, id string) []byte {
	mac := hmac.New(sha256.New, secret)
	// List and account names contain no NUL, so two different inputs never produce the same text.
	mac.Write([]byte(c.list + "\x00" + account + "\x00" + id))
	return mac.Sum(nil)[:sealSize]
}
