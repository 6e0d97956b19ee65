// Package backup saves a single machine's records and blobs while they are in use, and restores them elsewhere.
package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"strings"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
)

type Store interface {
	blob.Store
	Lister
}

type Opener interface {
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
}

type Lister interface {
	// List returns every blob below a prefix, at any depth and in any order. The empty prefix means
	// the entire store. List may miss blobs that are added or removed while it runs.
	List(ctx context.Context, prefix string) iter.Seq2[blob.Entry, error]
}

const format = 1

const manifestName = "manifest.json"

// In bytes.
const largestManifest, longestLine = 1 << 20, 4 << 10

type Manifest struct {
	Format int `json:"format"`
	// MadeAt is when the records were read.
	ID       string    `json:"id"`
	MadeAt   time.Time `json:"made_at"`
	Version  string    `json:"version"`
	Database Content   `json:"database"`
	Index    Content   `json:"index"`
	// Settings holds other files from the data folder, keyed by name, such as the secret for signing URLs.
	Settings map[string]Content `json:"settings"`
	Blobs    int                `json:"blobs"`
	Bytes    int64              `json:"bytes"`
}

// Size is in bytes. SHA256 is in hex.
type Content struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

type indexed struct {
	Name string `json:"name"`
	Content
	// StoredAt shows whether the blob has been replaced since.
	StoredAt time.Time `json:"stored_at"`
}

func (c Content) place() string { return "content/" + c.SHA256[:2] + "/" + c.SHA256 }

func (c Content) check() error {
	digest, err := hex.DecodeString(c.SHA256)
	if err != nil || len(digest) != sha256.Size || c.SHA256 != strings.ToLower(c.SHA256) || c.Size < 0 {
		return fmt.Errorf("%w: invalid content %.80q of %d bytes", ErrDamaged, c.SHA256, c.Size)
	}
	return nil
}

var (
	ErrNone = errors.New("the store has no backup")
	// ErrDamaged means that some content of a backup is missing or has the wrong bytes.
	ErrDamaged = errors.New("the backup is damaged")
)

// Read reads the manifest of the newest backup. Errors: ErrNone; ErrDamaged; an error if a newer
// version of the program made the backup.
func Read(ctx context.Context, store Opener) (Manifest, error) {
	var m Manifest
	r, err := store.Open(ctx, manifestName, 0, -1)
	if fault.Is(err, fault.NotFound) {
		return m, ErrNone
	}
	if err != nil {
		return m, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, largestManifest))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%w: manifest: %w", ErrDamaged, err)
	}
	if m.Format != format {
		return m, fmt.Errorf("the backup has format %d, but this version of the program supports only %d", m.Format, format)
	}
	if !idForm.MatchString(m.ID) || m.Blobs < 0 || m.Bytes < 0 {
		return m, fmt.Errorf("%w: invalid manifest with id %.80q, %d files and %d bytes", ErrDamaged, m.ID, m.Blobs, m.Bytes)
	}
	for _, part := range append([]Content{m.Database, m.Index}, values(m.Settings)...) {
		if err := part.check(); err != nil {
			return m, err
		}
	}
	return m, nil
}

func values(settings map[string]Content) (all []Content) {
	for _, content := range settings {
		all = append(all, content)
	}
	return all
}

func (m Manifest) index(ctx context.Context, store Opener) iter.Seq2[indexed, error] {
	return func(yield func(indexed, error) bool) {
		r, err := open(ctx, store, "index/"+m.ID, m.Index)
		if err != nil {
			yield(indexed{}, err)
			return
		}
		defer r.Close()
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, longestLine)
		for lines.Scan() {
			var line indexed
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				yield(line, fmt.Errorf("%w: index: %w", ErrDamaged, err))
				return
			}
			err := errors.Join(line.check(), blob.CheckName(line.Name))
			if !yield(line, err) || err != nil {
				return
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(indexed{}, fmt.Errorf("%w: index: %w", ErrDamaged, err))
		case err != nil:
			yield(indexed{}, err)
		}
	}
}

// open returns a reader that fails with ErrDamaged at the end if the bytes are wrong.
func open(ctx context.Context, store Opener, name string, want Content) (io.ReadCloser, error) {
	r, err := store.Open(ctx, name, 0, -1)
	if fault.Is(err, fault.NotFound) {
		return nil, fmt.Errorf("%w: %s is missing", ErrDamaged, name)
	}
	if err != nil {
		return nil, err
	}
	return &checked{from: r, name: name, want: want, hash: sha256.New()}, nil
}

type checked struct {
	from io.ReadCloser
	name string
	want Content
	hash hash.Hash
	read int64
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.hash.Write(p[:n])
	c.read += int64(n)
	if c.read > c.want.Size || err == io.EOF && (c.read != c.want.Size || sum(c.hash) != c.want.SHA256) {
		return n, fmt.Errorf("%w: %s has wrong bytes", ErrDamaged, c.name)
	}
	return n, err
}

func (c *checked) Close() error { return c.from.Close() }
func sum(h hash.Hash) string    { return hex.EncodeToString(h.Sum(nil)) }
