package file

import (
	"context"

	"cutroom/shared/domain/cursor"
)

// Cursors encodes and decodes the cursors of file pages.
type Cursors = cursor.Codec

const cursorsOf = "files"

// NewCursors returns cursors sealed with the secret.
func NewCursors(secret []byte) Cursors { return cursor.New(cursorsOf, secret) }

// NewCursorsFrom returns cursors sealed with a secret that is fetched when it is
// needed; see cursor.NewFrom.
func NewCursorsFrom(secret func(context.Context) ([]byte, error)) Cursors {
	return cursor.NewFrom(cursorsOf, secret)
}
