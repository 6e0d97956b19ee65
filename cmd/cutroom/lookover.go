package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cutroom/shared/app/records"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/integrity"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/durable"
	"cutroom/shared/platform/lowpriority"
)

const (
	// checkedAtStart is the size up to which all of a database is checked before the
	// server serves: a fraction of a second. Larger ones are checked while it serves.
	checkedAtStart = 32 << 20
	// checkTimeAtStart bounds that check.
	checkTimeAtStart = 10 * time.Second
	// checkTimeOfDamaged bounds the check of a database that was found damaged: as long as
	// it takes.
	checkTimeOfDamaged = 24 * time.Hour
	// damagedName is the file in the data folder whose database was found damaged while
	// it was served. It says how.
	damagedName = "damaged"
)

func (f dataFlag) damagedFile() string { return filepath.Join(f.Data, damagedName) }

// checkAtStart returns how long a database is checked before the server serves, given its
// size.
func checkAtStart(f dataFlag) (func(bytes int64) time.Duration, error) {
	_, err := os.Stat(f.damagedFile())
	switch {
	case err == nil:
		return func(int64) time.Duration { return checkTimeOfDamaged }, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return func(bytes int64) time.Duration {
		if bytes > checkedAtStart {
			return 0
		}
		return checkTimeAtStart
	}, nil
}

// lookOver does, while the server serves, what takes the longer the more there is: it
// checks the database if the start has not, sets aside the blobs that no record knows,
// mostly of interrupted uploads, and counts those that are missing. A damaged database
// makes the server stop with a *refusal, and the next start check all of it first.
func (s *server) lookOver(ctx context.Context, stop context.CancelCauseFunc) {
	defer s.blobs.ForgetNewcomers()
	if s.unchecked != nil {
		err := s.checkDatabase(ctx, s.unchecked)
		if ctx.Err() != nil || err != nil && s.noteDamage(err, stop) {
			return
		}
	}
	unknown, err := s.setAsideUnknown(ctx, s.sweeper, s.files, s.ended)
	if unknown > 0 {
		s.logger.Warn("files that no record knows were set aside; cutroom doctor --repair lists them", "blobs", unknown,
			"kept_for", s.keepUnknown)
	}
	if err != nil && ctx.Err() == nil {
		s.logger.Error("look for files that no record knows", "error", err)
	}
	s.blobs.ForgetNewcomers()
	switch missing, err := s.countMissing(ctx, s.clock.Now()); {
	case ctx.Err() != nil:
	case err != nil:
		s.logger.Error("look for missing files", "error", err)
	case missing > 0:
		s.logger.Error("files or results that the database knows are not there; put back the blobs folder from a backup",
			"blobs", missing)
	}
}

// checkDatabase checks all of the database, in the background.
func (s *server) checkDatabase(ctx context.Context, database records.Database) (err error) {
	var skipped []string
	begun := time.Now()
	lowpriority.Run(func() { skipped, err = database.Check(ctx) })
	if len(skipped) > 0 && ctx.Err() == nil {
		s.logger.Warn("parts of the database were not checked, as too much was written meanwhile; the next start tries again",
			"parts", skipped)
	}
	if err == nil && len(skipped) == 0 {
		s.logger.Info("the database was checked, and is in order", "took", time.Since(begun))
	}
	return err
}

// noteDamage logs why the database could not be checked, and stops the server if it is
// damaged, which it reports.
func (s *server) noteDamage(cause error, stop context.CancelCauseFunc) (damaged bool) {
	if !errors.Is(cause, integrity.ErrDamaged) {
		s.logger.Error("parts of the database could not be read to check them", "error", cause)
		return false
	}
	refused := &refusal{database: s.unchecked, flaw: "is damaged", cause: cause, served: true}
	s.logger.Error("the database is damaged; the server stops", "error", refused)
	if err := durable.Write(s.damagedFile, strings.NewReader(cause.Error()+"\n"), nil); err != nil {
		s.logger.Error("note that the database is damaged", "error", err)
	}
	stop(refused)
	return true
}

// countMissing counts the blobs that records refer to and that are missing.
func (s storage) countMissing(ctx context.Context, now time.Time) (missing int, err error) {
	for name, err := range s.records.Expected(ctx, now, now.Add(-job.DefaultResultAge)) {
		if err != nil {
			return missing, err
		}
		if _, err := s.blobs.Head(ctx, name); fault.Is(err, fault.NotFound) {
			missing++
		} else if err != nil {
			return missing, err
		}
	}
	return missing, nil
}
