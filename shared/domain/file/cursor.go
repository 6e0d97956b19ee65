package file

import (
	"context"

	"cutroom/shared/domain/cursor"
)

// Cursors makes and reads the cursors of file pages.
type Cursors = cursor.Codec

const cursorsOf = "files"

// NewCursors makes cursors sealed with the secret.
func NewCursors(secret []byte) Cursors { return cursor.New(cursorsOf, secret) }

// NewCursorsFrom makes cursors sealed with a secret that is asked for whenever
// it is needed; see cursor.NewFrom.
func NewCursorsFrom(secret func(context.Context) ([]byte, error)) Cursors {
	return cursor.NewFrom(cursorsOf, secret)
}
