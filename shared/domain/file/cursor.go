package file

import (
	"context"

	"cutroom/shared/domain/cursor"
)

type Cursors = cursor.Codec

const cursorsOf = "files"

func NewCursors(secret []byte) Cursors { return cursor.New(cursorsOf, secret) }
func NewCursorsFrom(secret func(context.Context) ([]byte, error)) Cursors {
	return cursor.NewFrom(cursorsOf, secret)
}
