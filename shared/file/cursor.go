package file

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"cutroom/shared/fault"
)

// Cursors makes and reads the cursors of file pages (decisions.md, "Files"):
// opaque, bound to the account, and good for any page size. A cursor holds the
// id of the last file of its page and a seal that only the holder of the secret
// can make.
type Cursors struct {
	secret func(context.Context) ([]byte, error)
}

// sealSize is the part of the HMAC-SHA256 that a cursor carries, in bytes.
const sealSize = 16

// NewCursors makes cursors sealed with the secret.
func NewCursors(secret []byte) Cursors {
	return Cursors{func(context.Context) ([]byte, error) { return secret, nil }}
}

// NewCursorsFrom makes cursors sealed with a secret that is asked for whenever
// it is needed, which should cost nothing once it is known.
func NewCursorsFrom(secret func(context.Context) ([]byte, error)) Cursors { return Cursors{secret} }

// Make gives the cursor of the page whose last file has the id.
//
// Errors: that the secret cannot be had.
func (c Cursors) Make(ctx context.Context, account, id string) (string, error) {
	secret, err := c.secret(ctx)
	if err != nil {
		return "", fmt.Errorf("file: the secret of cursors: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(append(seal(secret, account, id), id...)), nil
}

// Read gives the id in a cursor.
//
// Errors: fault.Invalid when the cursor was not made for the account with this
// secret; that the secret cannot be had.
func (c Cursors) Read(ctx context.Context, account, cursor string) (string, error) {
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

func seal(secret []byte, account, id string) []byte {
	mac := hmac.New(sha256.New, secret)
	// The account's name holds no NUL, so that no two pairs look alike.
	mac.Write([]byte("files\x00" + account + "\x00" + id))
	return mac.Sum(nil)[:sealSize]
}
