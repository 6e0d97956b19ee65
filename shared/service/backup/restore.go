package backup

import (
	"context"
	"io"
	"maps"
	"slices"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
)

// Target is where a backup is restored.
type Target struct {
	// Blobs may hold some of the backup's blobs already, of a restore that was broken
	// off.
	Blobs blob.Store
	// Setting keeps a file of the data folder. Records takes the records; it is called
	// last.
	Setting func(ctx context.Context, name string, content io.Reader) error
	Records func(ctx context.Context, content io.Reader) error
}

// Restored counts what a restore did.
type Restored struct {
	Manifest
	// Copied counts the blobs that were not there yet.
	Copied int
}

// Restore restores a backup, which Read has described. A restore that was broken off is
// continued.
//
// Errors: ErrDamaged; those of the backup's store and of the target.
func Restore(ctx context.Context, store Opener, m Manifest, to Target) (Restored, error) {
	done := Restored{Manifest: m}
	for line, err := range m.index(ctx, store) {
		if err != nil {
			return done, err
		}
		have, err := to.Blobs.Head(ctx, line.Name)
		if err == nil && have.Size == line.Size {
			continue
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return done, err
		}
		err = pass(ctx, store, line.place(), line.Content, func(ctx context.Context, r io.Reader) error {
			_, err := to.Blobs.Put(ctx, line.Name, r)
			return err
		})
		if err != nil {
			return done, err
		}
		done.Copied++
	}
	for _, name := range slices.Sorted(maps.Keys(m.Settings)) {
		content := m.Settings[name]
		err := pass(ctx, store, content.place(), content, func(ctx context.Context, r io.Reader) error {
			return to.Setting(ctx, name, r)
		})
		if err != nil {
			return done, err
		}
	}
	return done, pass(ctx, store, "database/"+m.ID, m.Database, to.Records)
}

// Verify reads all of a backup, and fails if a part is missing or damaged.
//
// Errors: ErrDamaged; those of the store.
func Verify(ctx context.Context, store Opener, m Manifest) error {
	discard := func(_ context.Context, r io.Reader) error {
		_, err := io.Copy(io.Discard, contextReader{ctx, r})
		return err
	}
	checked := map[Content]bool{} // many names may have the same bytes
	for line, err := range m.index(ctx, store) {
		if err != nil {
			return err
		}
		if checked[line.Content] {
			continue
		}
		checked[line.Content] = true
		if err := pass(ctx, store, line.place(), line.Content, discard); err != nil {
			return err
		}
	}
	for _, content := range m.Settings {
		if err := pass(ctx, store, content.place(), content, discard); err != nil {
			return err
		}
	}
	return pass(ctx, store, "database/"+m.ID, m.Database, discard)
}

// pass passes a part of a backup on. What takes it must read to its end before it keeps
// any of it.
func pass(ctx context.Context, store Opener, name string, want Content,
	to func(context.Context, io.Reader) error) error {
	r, err := open(ctx, store, name, want)
	if err != nil {
		return err
	}
	defer r.Close()
	return to(ctx, r)
}
