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
// inference side is reloaded: everything for media uses the catalog that the
// program started with.
type Live struct {
	current atomic.Pointer[Catalog]
}

// NewLive returns a live catalog that starts with the given one.
func NewLive(catalog *Catalog) *Live {
	l := &Live{}
	l.current.Store(catalog)
	return l
}

// Catalog returns the current catalog. A call should read it once and keep it.
func (l *Live) Catalog() *Catalog { return l.current.Load() }

// Knows reports whether any model has the name now.
func (l *Live) Knows(name string) bool { return l.Catalog().Knows(name) }

// File is the file that a live catalog follows.
type File struct {
	// Path is the file's path, Family the replacement for $family in it.
	Path, Family string
	// Source is the content when the file was last read, valid or not; at
	// first, the content that the catalog was made from.
	Source []byte

	unreadable bool
}

// Follow checks the file at every interval, and whenever ask delivers, until
// the context ends. A valid file replaces the catalog. For an invalid one the
// catalog stays, and the log names the wrong line once.
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

// Reload reads the file and replaces the catalog if the content has changed
// since it was last read. An invalid file changes nothing, and is an error only
// the first time.
func (l *Live) Reload(file *File) (changed bool, err error) {
	// The content is compared, not the time or size: the file is small, and an
	// editor or a mounted volume may leave both unchanged.
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
