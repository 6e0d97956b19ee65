package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/integrity"
	"cutroom/shared/service/health"
)

type storage struct {
	records *sqlite.DB
	blobs   *diskblob.Store
	// marker is stored next to the blobs. It states which records must exist at the next start.
	marker *diskblob.Marker
}

// openStorage opens records and blobs after checking that they belong together.
//
// Errors: as for checkStorage, in which case nothing has changed; fault.StorageFull.
func openStorage(ctx context.Context, f dataFlag, options sqlite.Options) (s storage, err error) {
	if _, err := checkStorage(ctx, f, checkAtStart); err != nil {
		return s, err
	}
	return openBoth(ctx, f, options)
}

// checkAtStart returns how long the database check may delay the start. A database of more than 32 MiB gets no
// check of its pages at the start, because it would take too long; each backup checks its copy instead.
func checkAtStart(bytes int64) time.Duration {
	if bytes > 32<<20 {
		return 0
	}
	return 10 * time.Second
}

// openBoth opens records and blobs without checking that they belong together.
func openBoth(ctx context.Context, f dataFlag, options sqlite.Options) (s storage, err error) {
	if s.blobs, err = diskblob.Open(f.blobFolder()); err != nil {
		return s, err
	}
	var told func(int64)
	options.Committed = func(writes int64) {
		if told != nil {
			told(writes)
		}
	}
	if s.records, err = sqlite.Open(ctx, f.database(), options); err != nil {
		return s, err
	}
	mark, err := s.records.Mark(ctx)
	if err == nil {
		s.marker, err = s.blobs.Marker(mark)
	}
	if err != nil {
		return s, errors.Join(err, s.close())
	}
	told = s.marker.Advance
	return s, nil
}

func (s storage) close() error {
	var err error
	if s.records != nil {
		err = s.records.Close()
	}
	if s.marker != nil {
		err = errors.Join(err, s.marker.Close())
	}
	return err
}

// mismatchError is the error for records and blobs that do not belong together. Its message says what to do.
type mismatchError struct {
	database string
	flaw     string
	cause    error
}

func (r *mismatchError) why() string { return r.database + " " + r.flaw }

func (r *mismatchError) Error() string {
	instead := "continue with the current one"
	if errors.Is(r.cause, integrity.ErrDamaged) {
		instead = "continue without it (sqlite3 FILE .recover saves its remaining data)"
	}
	text := fmt.Sprintf(`%s. Nothing was changed. Restore the newest copy of cutroom.db with its cutroom.db-wal, `+
		`or run "cutroom doctor --repair" to %s`, r.why(), instead)
	if r.cause != nil {
		text += fmt.Sprintf(" (%v)", r.cause)
	}
	return text
}

func (r *mismatchError) Unwrap() error { return r.cause }

// checkStorage checks, without changing anything, that the database is sound and not older than the blobs. If the
// database were missing or too old, users' files would have no record. The function within returns the time limit for
// the full check, given the database's size. The result whole reports whether the check finished in that time.
//
// Errors: *mismatchError, in a *command.DamageError if the database is damaged; file system errors.
func checkStorage(ctx context.Context, f dataFlag, within func(bytes int64) time.Duration) (whole bool, err error) {
	mark, err := diskblob.ReadMark(f.blobFolder())
	if err != nil {
		return false, err
	}
	if err := checkNotLost(ctx, f); err != nil {
		return false, err
	}
	database := f.database()
	found, err := sqlite.Inspect(ctx, database, 0)
	if err == nil {
		if most := within(found.Bytes); most > 0 {
			found, err = sqlite.Inspect(ctx, database, most)
		}
	}
	switch {
	case errors.Is(err, integrity.ErrNone):
		return true, nil
	case errors.Is(err, integrity.ErrDamaged):
		return false, &command.DamageError{Err: &mismatchError{database: database, flaw: "is damaged", cause: err}}
	case err != nil:
		return false, err
	case mark == integrity.Mark{}:
		return found.Complete, nil // the first start with this version of the program
	case found.Mark.Database == "":
		return false, &mismatchError{database: database,
			flaw: "is older than the stored files: it is a copy from before the last update of the program"}
	case found.Mark.Database != mark.Database:
		return false, &mismatchError{database: database, flaw: "does not belong to the stored files"}
	case found.Mark.Writes < mark.Writes:
		return false, &mismatchError{database: database, flaw: fmt.Sprintf(
			"is older than the stored files: it lacks the last %d changes", mark.Writes-found.Mark.Writes)}
	}
	return found.Complete, nil
}

// checkNotLost returns an error if the database is missing although blobs exist.
//
// Errors: *mismatchError; an error if a restore is incomplete; file system errors.
func checkNotLost(ctx context.Context, f dataFlag) error {
	if err := checkNotRestoring(f.Data); err != nil {
		return err
	}
	database := f.database()
	err := sqlite.Present(database)
	switch {
	case errors.Is(err, integrity.ErrLostMain):
		return &mismatchError{database: database, flaw: "is missing or empty, although its log exists", cause: err}
	case !errors.Is(err, integrity.ErrNone):
		return err
	}
	blobs, err := holdsBlobs(ctx, f.blobFolder())
	if err == nil && blobs {
		err = &mismatchError{database: database, flaw: "is missing or empty, although stored files exist"}
	}
	return err
}

func holdsBlobs(ctx context.Context, root string) (bool, error) {
	view, err := diskblob.NewView(root)
	if err != nil {
		return false, err
	}
	return view.Any(ctx)
}

// putBackKnown puts back blobs that were set aside and have a record again, for example after a
// newer copy of the database was restored.
func (s storage) putBackKnown(ctx context.Context, logger *slog.Logger) error {
	all, err := s.blobs.ListAside(ctx)
	if err != nil {
		return err
	}
	back := 0
	for _, set := range all {
		known, err := s.knows(ctx, set.Name)
		if err != nil {
			return err
		}
		if !known {
			continue
		}
		if err := s.blobs.PutBack(ctx, set); err != nil {
			logger.Warn("cannot restore a blob that is in use again", "blob", set.Name, "error", err)
			continue
		}
		back++
	}
	if back > 0 {
		logger.Warn("restored files that are in use again", "blobs", back)
	}
	return nil
}

func (s storage) knows(ctx context.Context, name string) (bool, error) {
	if rest, ok := strings.CutPrefix(name, "jobs/"); ok {
		id, _, _ := strings.Cut(rest, "/")
		return s.records.Jobs().Known(ctx, id)
	}
	if id, ok := batch.Owner(name); ok {
		return s.records.Batches().Known(ctx, id)
	}
	return s.records.Files().KnownBlob(ctx, name)
}

// setAsideUnknown sets aside blobs without a record and returns their number. A failed sweeper does not stop the
// others.
func (s storage) setAsideUnknown(ctx context.Context, sweepers ...unknownSweeper) (blobs int, err error) {
	for _, sweeper := range sweepers {
		n, failed := sweeper.SweepUnknown(ctx)
		blobs, err = blobs+n, errors.Join(err, failed)
	}
	return blobs, err
}

// An unknownSweeper sets aside blobs of one kind that have no record, and returns their number.
type unknownSweeper interface {
	SweepUnknown(ctx context.Context) (blobs int, err error)
}

const asideEvery = time.Hour

// restoreEvery is the interval at which the server tries to restore the reserve. A write that used
// up the reserve also tries to restore it.
const restoreEvery = time.Minute

// watchStorage restores the reserve and deletes set-aside blobs that have expired, until the context ends.
func (s *server) watchStorage(ctx context.Context) {
	ticker := time.NewTicker(asideEvery)
	defer ticker.Stop()
	restore := time.NewTicker(restoreEvery)
	defer restore.Stop()
	for {
		dropped, err := s.dropAside(ctx)
		if err != nil && ctx.Err() == nil {
			s.logger.Error("cannot delete files that were set aside", "error", err)
		}
		if dropped > 0 {
			s.logger.Warn("deleted expired files without a record", "blobs", dropped)
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case <-restore.C:
				s.reserve.Restore()
				if err := s.records.Responses().Sweep(ctx, s.clock.Now()); err != nil && ctx.Err() == nil {
					s.logger.Error("cannot delete expired responses", "error", err)
				}
			case <-ticker.C:
				waiting = false
			}
		}
	}
}

func (s *server) dropAside(ctx context.Context) (blobs int, err error) {
	if !s.clock.Settled() {
		return 0, nil
	}
	return s.blobs.DropAsideBefore(ctx, s.clock.Now().Add(-unknownTime))
}

// health returns a checker that tests whether records, blobs and the engines' working folder are writable.
func (s storage) health(scratch string, logger *slog.Logger) *health.Checker {
	return health.New(logger,
		health.Probe{What: "the database", Reason: "The database cannot be written.", Check: s.records.Probe},
		health.Probe{What: "the blobs", Reason: "Files cannot be written.", Check: s.blobs.Probe},
		health.Probe{What: "the scratch folder", Reason: "Jobs cannot be processed.",
			Check: func(context.Context) error { return probeFolder(scratch) }},
	)
}

func probeFolder(folder string) error {
	made, err := os.CreateTemp(folder, ".probe-*")
	if err != nil {
		return err
	}
	return errors.Join(made.Close(), os.Remove(made.Name()))
}
