package backup

import (
	"context"
	"io"
	"iter"
	"strings"

	"cutroom/shared/domain/blob"
)

// Below returns a store of the blobs below prefix + "/". Its names are relative to the prefix.
func Below(store Store, prefix string) Store {
	if prefix == "" {
		return store
	}
	return below{store, prefix + "/"}
}

type below struct {
	store  Store
	prefix string
}

func (b below) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	return b.store.Put(ctx, b.prefix+name, r)
}

func (b below) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	return b.store.Open(ctx, b.prefix+name, offset, length)
}

func (b below) Head(ctx context.Context, name string) (blob.Info, error) {
	return b.store.Head(ctx, b.prefix+name)
}

func (b below) Copy(ctx context.Context, from, to string) error {
	return b.store.Copy(ctx, b.prefix+from, b.prefix+to)
}

func (b below) Delete(ctx context.Context, name string) error {
	return b.store.Delete(ctx, b.prefix+name)
}

func (b below) List(ctx context.Context, prefix string) iter.Seq2[blob.Entry, error] {
	return func(yield func(blob.Entry, error) bool) {
		for entry, err := range b.store.List(ctx, b.prefix+prefix) {
			entry.Name = strings.TrimPrefix(entry.Name, b.prefix)
			if !yield(entry, err) {
				return
			}
		}
	}
}
