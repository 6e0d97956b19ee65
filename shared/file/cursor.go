package file

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"cutroom/shared/fault"
)

// Cursors makes and reads the cursors of file pages (decisions.md, "Files"):
// opaque, bound to the account, and good for any page size. A cursor holds the
// id of the last file of its page and a seal that only the holder of the secret
// can make.
type Cursors struct{ secret []byte }

// sealSize is the part of the HMAC-SHA256 that a cursor carries, in bytes.
const sealSize = 16

// NewCursors makes cursors sealed with the secret.
func NewCursors(secret []byte) Cursors { return Cursors{secret} }

// Make gives the cursor of the page whose last file has the id.
func (c Cursors) Make(account, id string) string {
	return base64.RawURLEncoding.EncodeToString(append(c.seal(account, id), id...))
}

// Read gives the id in a cursor.
//
// Errors: fault.Invalid when the cursor was not made for the account with this
// secret.
func (c Cursors) Read(account, cursor string) (string, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil && len(sealed) > sealSize {
		id := string(sealed[sealSize:])
		// The cursor as a whole, so that it has one spelling: the decoder passes
		// over line ends, and over bits that belong to no byte.
		if hmac.Equal([]byte(cursor), []byte(c.Make(account, id))) {
			return id, nil
		}
	}
	return "", fault.New(fault.Invalid, "The cursor is not one that this endpoint returned.")
}

func (c Cursors) seal(account, id string) []byte {
	mac := hmac.New(sha256.New, c.secret)
	// The account's name holds no NUL, so that no two pairs look alike.
	mac.Write([]byte("files\x00" + account + "\x00" + id))
	return mac.Sum(nil)[:sealSize]
}
