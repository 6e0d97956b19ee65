package diskblob

import (
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"

	"cutroom/shared/domain/blob"
)

// View reads the blobs in a root that another process may have open.
type View struct{ store *Store }

// NewView also accepts a root that does not exist yet.
func NewView(root string) (*View, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("folder: %w", err)
	}
	return &View{&Store{root: root}}, nil
}

func (v *View) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	return v.store.Open(ctx, name, offset, length)
}

func (v *View) List(ctx context.Context, prefix string) iter.Seq2[blob.Entry, error] {
	return v.store.List(ctx, prefix)
}

func (v *View) Any(ctx context.Context) (bool, error) {
	for _, err := range v.store.List(ctx, "") {
		return err == nil, err
	}
	return false, nil
}
