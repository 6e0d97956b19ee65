package backup

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
)

// Blobs is a blob store. It may change while a backup runs.
type Blobs interface {
	Lister
	Opener
}

type Source struct {
	// Snapshot writes a consistent snapshot of the records to a new file.
	Snapshot func(ctx context.Context, path string) error
	Blobs    Blobs
	// Settings maps names to paths of files in the data folder. Missing files are skipped.
	Settings map[string]string
}

type Saver struct {
	Source Source
	Store  Store
	// Work is a folder for a temporary copy of the records. If the process is killed, the copy
	// remains (see WorkPattern).
	Work    string
	Version string
	// Reread verifies the content of earlier backups and saves damaged content again. Otherwise,
	// only sizes are compared.
	Reread bool
	Now    func() time.Time
	// NewID returns a unique id of letters and digits.
	NewID func() string
}

const WorkPattern = "backup-*"

var idForm = regexp.MustCompile(`^[0-9A-Za-z]{8,64}$`)

// Content newer than this is not deleted, because another backup to the same store may be about to reference it.
const spared = 24 * time.Hour

// claimName is the blob that marks a store for backups. lockName is the file that locks a folder.
const claimName, lockName = "cutroom-backup", "lock"

type Report struct {
	Manifest
	// NewBlobs and NewBytes count the content that the store did not have yet.
	NewBlobs int
	NewBytes int64
	// Deleted counts deleted content from earlier backups. Damaged counts content with wrong bytes.
	Deleted, Damaged int
}

type saving struct {
	Saver
	report Report
	// last is the id of the backup to replace, or empty.
	last string
	// known holds the blobs from the last and the current backup. seen holds only the current backup's blobs.
	known, seen map[string]indexed
	// kept maps the names of the store's content to sizes.
	kept map[string]int64
}

// Save makes a backup. It replaces the store's previous backup, which stays complete until then.
//
// It reads the records after the blobs, and then adds newer blobs. So the backup contains every blob in the records,
// except for blobs that were both added and deleted during the backup. The records of such blobs then behave like
// expired ones, or a batch's result is lost. A server sets aside blobs that have no record.
//
// Save fails if the store contains other data, or if another backup was made in the meantime. After an error, the
// previous backup still exists.
func (s Saver) Save(ctx context.Context) (Report, error) {
	run := &saving{Saver: s, known: map[string]indexed{}, seen: map[string]indexed{}, kept: map[string]int64{}}
	run.report.Manifest = Manifest{Format: format, ID: s.NewID(), Version: s.Version, Settings: map[string]Content{}}
	last, err := Read(ctx, s.Store)
	if err != nil && !errors.Is(err, ErrNone) && !errors.Is(err, ErrDamaged) {
		return run.report, err
	}
	if err == nil {
		run.last = last.ID
		// If the index cannot be read, save everything again.
		for line, err := range last.index(ctx, s.Store) {
			if err != nil {
				clear(run.known)
				break
			}
			run.known[line.Name] = line
		}
	}
	if err := run.claim(ctx); err != nil {
		return run.report, err
	}
	for entry, err := range s.Store.List(ctx, "content") {
		if err != nil {
			return run.report, err
		}
		whole, err := run.stillWhole(ctx, entry)
		if err != nil {
			return run.report, err
		}
		if whole {
			run.kept[entry.Name] = entry.Size
		} else {
			run.report.Damaged++
		}
	}
	if err := run.save(ctx); err != nil {
		return run.report, err
	}
	return run.report, run.prune(ctx)
}

// stillWhole verifies content from an earlier backup. Without Reread, it trusts the store.
func (s *saving) stillWhole(ctx context.Context, entry blob.Entry) (bool, error) {
	if !s.Reread {
		return true, nil
	}
	want := Content{entry.Size, path.Base(entry.Name)}
	if want.check() != nil || want.place() != entry.Name {
		return false, nil
	}
	r, err := open(ctx, s.Store, entry.Name, want)
	if err == nil {
		_, err = io.Copy(io.Discard, contextReader{ctx, r})
		r.Close()
	}
	if errors.Is(err, ErrDamaged) {
		return false, nil
	}
	return err == nil, err
}

// claim marks the store as a store for backups. It fails if the store contains other data.
func (s *saving) claim(ctx context.Context) error {
	_, err := s.Store.Head(ctx, claimName)
	if err == nil || !fault.Is(err, fault.NotFound) {
		return err
	}
	for entry, err := range s.Store.List(ctx, "") {
		if err != nil {
			return err
		}
		if entry.Name != lockName {
			return fmt.Errorf("the store contains other data, such as %s; use an empty store", entry.Name)
		}
	}
	_, err = s.Store.Put(ctx, claimName, strings.NewReader("Backups of Cutroom. Files that no backup references are deleted.\n"))
	return err
}

func (s *saving) save(ctx context.Context) error {
	if err := s.blobs(ctx); err != nil {
		return err
	}
	work, err := os.MkdirTemp(s.Work, WorkPattern)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	s.report.MadeAt = s.Now().UTC().Truncate(time.Second)
	copied := filepath.Join(work, "records")
	if err := s.Source.Snapshot(ctx, copied); err != nil {
		return err
	}
	// Save the blobs of records that were added since the blobs were listed.
	if err := s.blobs(ctx); err != nil {
		return err
	}
	if s.report.Database, err = s.file(ctx, copied, "database/"+s.report.ID); err != nil {
		return err
	}
	for name, path := range s.Source.Settings {
		content, err := s.file(ctx, path, "")
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		s.report.Settings[name] = content
	}
	if err := s.index(ctx, filepath.Join(work, "index")); err != nil {
		return err
	}
	text, err := json.MarshalIndent(s.report.Manifest, "", "  ")
	if err != nil {
		return err
	}
	if err := s.expectLast(ctx); err != nil {
		return err
	}
	_, err = s.Store.Put(ctx, manifestName, bytes.NewReader(append(text, '\n')))
	return err
}

// expectLast fails if another backup has finished, because it may have deleted this backup's content.
func (s *saving) expectLast(ctx context.Context) error {
	now, err := Read(ctx, s.Store)
	if errors.Is(err, ErrNone) || errors.Is(err, ErrDamaged) {
		now, err = Manifest{}, nil
	}
	if err == nil && now.ID != s.last {
		err = errors.New("another backup to this store has finished in the meantime; run only one at a time")
	}
	return err
}

func (s *saving) blobs(ctx context.Context) error {
	for entry, err := range s.Source.Blobs.List(ctx, "") {
		if err != nil {
			return err
		}
		line, ok := s.known[entry.Name]
		if !ok || line.Size != entry.Size || !line.StoredAt.Equal(entry.StoredAt) || !s.has(line.Content) {
			content, err := s.content(ctx, func() (io.ReadCloser, error) {
				return s.Source.Blobs.Open(ctx, entry.Name, 0, -1)
			})
			if fault.Is(err, fault.NotFound) {
				continue // deleted since it was listed
			}
			if err != nil {
				return fmt.Errorf("save %s: %w", entry.Name, err)
			}
			line = indexed{entry.Name, content, entry.StoredAt}
			s.known[entry.Name] = line
		}
		s.seen[entry.Name] = line
	}
	return nil
}

func (s *saving) has(content Content) bool {
	size, ok := s.kept[content.place()]
	return ok && size == content.Size
}

var errChanged = errors.New("the bytes changed while they were read")

// content saves bytes unless the store has them. It reads them twice, because their name is their digest.
func (s *saving) content(ctx context.Context, open func() (io.ReadCloser, error)) (Content, error) {
	var content Content
	for range 3 {
		r, err := open()
		if err != nil {
			return content, err
		}
		digest := sha256.New()
		content.Size, err = io.Copy(digest, contextReader{ctx, r})
		r.Close()
		if err != nil {
			return content, err
		}
		content.SHA256 = sum(digest)
		if s.has(content) {
			return content, nil
		}
		if r, err = open(); err != nil {
			return content, err
		}
		same := &checked{from: r, name: "it", want: content, hash: sha256.New()}
		_, err = s.Store.Put(ctx, content.place(), same)
		r.Close()
		if errors.Is(err, ErrDamaged) {
			continue // the file was replaced between the two reads
		}
		if err == nil {
			s.kept[content.place()] = content.Size
			s.report.NewBlobs++
			s.report.NewBytes += content.Size
		}
		return content, err
	}
	return content, errChanged
}

func (s *saving) file(ctx context.Context, path, name string) (Content, error) {
	if name == "" {
		return s.content(ctx, func() (io.ReadCloser, error) { return os.Open(path) })
	}
	f, err := os.Open(path)
	if err != nil {
		return Content{}, err
	}
	defer f.Close()
	digest := sha256.New()
	size, err := s.Store.Put(ctx, name, io.TeeReader(f, digest))
	return Content{size, sum(digest)}, err
}

func (s *saving) index(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	lines := bufio.NewWriter(f)
	write := json.NewEncoder(lines)
	for _, line := range s.seen {
		if err := write.Encode(line); err != nil {
			f.Close()
			return err
		}
		s.report.Blobs++
		s.report.Bytes += line.Size
	}
	if err := errors.Join(lines.Flush(), f.Close()); err != nil {
		return err
	}
	s.report.Index, err = s.file(ctx, path, "index/"+s.report.ID)
	return err
}

// prune deletes the replaced backup, and content that has not been referenced for a long time.
func (s *saving) prune(ctx context.Context) error {
	named := map[string]bool{"database/" + s.report.ID: true, "index/" + s.report.ID: true}
	for _, content := range s.report.Settings {
		named[content.place()] = true
	}
	for _, line := range s.seen {
		named[line.place()] = true
	}
	replaced := map[string]bool{"database/" + s.last: true, "index/" + s.last: true}
	before := s.Now().Add(-spared)
	for _, prefix := range []string{"database", "index", "content"} {
		for entry, err := range s.Store.List(ctx, prefix) {
			if err != nil {
				return err
			}
			if named[entry.Name] || !replaced[entry.Name] && entry.StoredAt.After(before) {
				continue
			}
			if err := s.Store.Delete(ctx, entry.Name); err != nil {
				return err
			}
			s.report.Deleted++
		}
	}
	return nil
}

type contextReader struct {
	ctx  context.Context
	from io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}
