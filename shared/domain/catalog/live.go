package catalog

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// Live is a catalog that is reloaded when its file changes. Only inference models are reloaded.
type Live struct {
	current atomic.Pointer[Catalog]
}

func NewLive(catalog *Catalog) *Live {
	l := &Live{}
	l.current.Store(catalog)
	return l
}

// A request should read the catalog only once, so that it sees the same catalog throughout.
func (l *Live) Catalog() *Catalog { return l.current.Load() }

func (l *Live) Knows(name string) bool { return l.Catalog().Knows(name) }

type File struct {
	Path, Family string // Family replaces $family in the file.
	// Source is the content at the last read, even if it was invalid.
	Source []byte

	unreadable bool
}

// Follow checks the file at every interval until the context ends. It logs an invalid file only once.
func (l *Live) Follow(ctx context.Context, file File, every time.Duration, logger *slog.Logger) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		changed, err := l.Reload(&file)
		switch {
		case err != nil:
			logger.Error("invalid catalog file; the old catalog stays in use", "file", file.Path, "error", err)
		case changed:
			logger.Info("catalog reloaded", "file", file.Path, "inference_models", len(l.Catalog().InferenceModels()))
		}
	}
}

// Reload replaces the catalog if the file has changed since the last read. If the file is invalid,
// it keeps the catalog, and returns an error only the first time.
func (l *Live) Reload(file *File) (changed bool, err error) {
	// Compare the content, because an editor or a mounted volume may leave the modification time and size unchanged.
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
