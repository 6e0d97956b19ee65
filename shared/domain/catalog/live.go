package catalog

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// Live is a catalog that follows its file while the program runs. Only the
// inference side is read through it: what handles media is made of the catalog
// that the program started with.
type Live struct {
	current atomic.Pointer[Catalog]
}

// NewLive makes a live catalog that starts with the given one.
func NewLive(catalog *Catalog) *Live {
	l := &Live{}
	l.current.Store(catalog)
	return l
}

// Catalog returns the catalog as it is now. A call reads it once and keeps it.
func (l *Live) Catalog() *Catalog { return l.current.Load() }

// Knows reports whether any model has the name now.
func (l *Live) Knows(name string) bool { return l.Catalog().Knows(name) }

// File is the file that a live catalog follows.
type File struct {
	// Path is where it is, Family what $family in it stands for.
	Path, Family string
	// Source is what the file held when it was last read, good or bad; at first,
	// what the catalog was made of.
	Source []byte

	unreadable bool
}

// Follow looks at the file at every interval, and whenever ask delivers, until
// the context ends. A good file replaces the catalog; of a bad one the log names
// the line that is wrong, once, and the catalog stays.
func (l *Live) Follow(ctx context.Context, file File, every time.Duration, ask <-chan os.Signal, logger *slog.Logger) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-ask:
		}
		changed, err := l.Reload(&file)
		switch {
		case err != nil:
			logger.Error("the catalog stays as it was, as the file is bad", "file", file.Path, "error", err)
		case changed:
			logger.Info("the catalog was read again", "file", file.Path, "inference_models", len(l.Catalog().InferenceModels()))
		}
	}
}

// Reload reads the file and, where its content has changed since it was last
// read, replaces the catalog by it. A file that is bad is an error the first
// time that it is seen so, and changes nothing.
func (l *Live) Reload(file *File) (changed bool, err error) {
	// The content is compared, not the time or the size: the file is small, and
	// an editor or a mounted volume may keep both.
	source, err := os.ReadFile(file.Path)
	if err != nil {
		known := file.unreadable
		file.unreadable = true
		if known {
			return false, nil
		}
		return false, err
	}
	file.unreadable = false
	if bytes.Equal(source, file.Source) {
		return false, nil
	}
	file.Source = source
	catalog, err := Parse(source, file.Family)
	if err != nil {
		return false, err
	}
	l.current.Store(catalog)
	return true, nil
}
