// Package backup saves what one machine keeps, records and blobs, while it is being
// used, and restores it elsewhere.
//
// A backup is a tree of blobs, in a folder or a bucket:
//
//	cutroom-backup      marks the tree
//	manifest.json       what the backup is; replaced last, so that it is old or new
//	database/ID         the records as of one moment
//	index/ID            the names, sizes and digests of the blobs
//	content/ab/abcd...  the bytes of the blobs, and of the files beside them, each under
//	                    its SHA-256, so that a later backup adds only what is new
//
// What a broken-off backup has stored is used by the next one, and does not touch the
// backup that is there.
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

// Store is where a backup is kept.
type Store interface {
	blob.Store
	Lister
}

// Opener opens blobs, as blob.Store does.
type Opener interface {
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
}

// Lister lists blobs.
type Lister interface {
	// List returns every blob below a prefix such as "content", at any depth and in no
	// order; the empty prefix is the whole store. Blobs that are added or removed
	// meanwhile may be missed.
	List(ctx context.Context, prefix string) iter.Seq2[blob.Entry, error]
}

// format is the version of the layout that this package writes and reads.
const format = 1

// manifestName is the name of the manifest in the backup.
const manifestName = "manifest.json"

// largestManifest and longestLine bound a manifest and a line of an index, in bytes.
const largestManifest, longestLine = 1 << 20, 4 << 10

// Manifest describes a backup.
type Manifest struct {
	Format int `json:"format"`
	// ID is the backup's own. MadeAt is when its records were read.
	ID     string    `json:"id"`
	MadeAt time.Time `json:"made_at"`
	// Version is that of the program that made the backup.
	Version  string  `json:"version"`
	Database Content `json:"database"`
	Index    Content `json:"index"`
	// Settings are the files of the data folder beside the records and blobs, such as
	// the secret that signs URLs, by their names.
	Settings map[string]Content `json:"settings"`
	// Blobs and Bytes count what the index names.
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
}

// Content is bytes in the backup. Size is in bytes, SHA256 in hex.
type Content struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// indexed is a line of the index.
type indexed struct {
	Name string `json:"name"`
	Content
	// StoredAt tells whether the blob was replaced since.
	StoredAt time.Time `json:"stored_at"`
}

// place returns the name of content in the backup.
func (c Content) place() string { return "content/" + c.SHA256[:2] + "/" + c.SHA256 }

// check fails if a description that was read cannot be true.
func (c Content) check() error {
	digest, err := hex.DecodeString(c.SHA256)
	if err != nil || len(digest) != sha256.Size || c.SHA256 != strings.ToLower(c.SHA256) || c.Size < 0 {
		return fmt.Errorf("%w: it describes %.80q of %d bytes", ErrDamaged, c.SHA256, c.Size)
	}
	return nil
}

var (
	// ErrNone means that there is no backup.
	ErrNone = errors.New("there is no backup")
	// ErrDamaged means that a part of a backup is missing or has other bytes than it was
	// made with.
	ErrDamaged = errors.New("the backup is damaged")
)

// Read reads the manifest of the newest backup in a store.
//
// Errors: ErrNone; ErrDamaged; one that says so if a newer version of the program made
// the backup; the store's.
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
		return m, fmt.Errorf("%w: its manifest: %w", ErrDamaged, err)
	}
	if m.Format != format {
		return m, fmt.Errorf("the backup has format %d, and this version of the program reads %d", m.Format, format)
	}
	if !idForm.MatchString(m.ID) || m.Blobs < 0 || m.Bytes < 0 {
		return m, fmt.Errorf("%w: it is %.80q, of %d files and %d bytes", ErrDamaged, m.ID, m.Blobs, m.Bytes)
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

// index reads the index of a backup line by line.
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
				yield(line, fmt.Errorf("%w: its index: %w", ErrDamaged, err))
				return
			}
			err := errors.Join(line.check(), blob.CheckName(line.Name))
			if !yield(line, err) || err != nil {
				return
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(indexed{}, fmt.Errorf("%w: its index: %w", ErrDamaged, err))
		case err != nil:
			yield(indexed{}, err)
		}
	}
}

// open opens a part of a backup. Reading it to the end fails with ErrDamaged if it is
// not what it was made as.
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

// checked compares what is read with what it should be.
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
		return n, fmt.Errorf("%w: %s has other bytes", ErrDamaged, c.name)
	}
	return n, err
}

func (c *checked) Close() error { return c.from.Close() }

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
