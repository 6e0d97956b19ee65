package catalog

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// Live is a catalog that follows its file while the program runs. Only the inference side is
// reloaded: media routes use the catalog that the program started with.
type Live struct {
	current atomic.Pointer[Catalog]
}

func NewLive(catalog *Catalog) *Live {
	l := &Live{}
	l.current.Store(catalog)
	return l
}

// Catalog returns the current catalog. A call should read it once and keep it.
func (l *Live) Catalog() *Catalog { return l.current.Load() }

func (l *Live) Knows(name string) bool { return l.Catalog().Knows(name) }

type File struct {
	// Path is the file's path, Family the replacement for $family in it.
	Path, Family string
	// Source is the content when the file was last read, even if invalid. At first it is the
	// content of the initial catalog.
	Source []byte

	unreadable bool
}

// Follow checks the file at every interval, and whenever ask receives, until the context ends. A valid file
// replaces the catalog. For an invalid file it logs the wrong line once and keeps the catalog.
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
			logger.Error("the catalog file is invalid; the old catalog stays in use", "file", file.Path, "error", err)
		case changed:
			logger.Info("the catalog was read again", "file", file.Path, "inference_models", len(l.Catalog().InferenceModels()))
		}
	}
}

// Reload replaces the catalog if the file has changed since it was last read. An invalid file
// changes nothing, and is an error only the first time.
func (l *Live) Reload(file *File) (changed bool, err error) {
	// Compare the content, not time or size: the file is small, and an editor or a mounted volume
	// may leave both unchanged.
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
