package backup

import (
	"context"
	"io"
	"maps"
	"slices"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
)

type Target struct {
	// Blobs may already contain blobs from an interrupted restore.
	Blobs blob.Store
	// Setting stores a file in the data folder. Records stores the records. It is called last.
	Setting func(ctx context.Context, name string, content io.Reader) error
	Records func(ctx context.Context, content io.Reader) error
}

type Restored struct {
	Manifest
	// Copied counts the blobs that did not exist yet.
	Copied int
}

// Restore restores a backup, given its manifest from Read, or continues an interrupted restore. Errors: ErrDamaged.
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

// Verify reads the entire backup. Errors: ErrDamaged.
func Verify(ctx context.Context, store Opener, m Manifest) error {
	discard := func(_ context.Context, r io.Reader) error {
		_, err := io.Copy(io.Discard, contextReader{ctx, r})
		return err
	}
	checked := map[Content]bool{} // several names may have the same content
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

// pass passes a reader of the content to a function. The reader fails at the end if the bytes are wrong, so the
// function must read to the end before it keeps anything.
func pass(ctx context.Context, store Opener, name string, want Content,
	to func(context.Context, io.Reader) error) error {
	r, err := open(ctx, store, name, want)
	if err != nil {
		return err
	}
	defer r.Close()
	return to(ctx, r)
}
