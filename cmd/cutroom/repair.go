package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/integrity"
	"cutroom/shared/domain/job"
)

type repair struct {
	data   dataFlag
	report func(finding) error
	now    func() time.Time
}

// checkTimeOfRepair returns a limit long enough for any database, because a repair needs a complete check.
func checkTimeOfRepair(int64) time.Duration { return time.Hour }

func (r *repair) run(ctx context.Context) (err error) {
	if _, err := os.Stat(r.data.Data); err != nil {
		return fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	lock, err := lockFolder(r.data.Data)
	if err != nil {
		return fmt.Errorf("stop the server before a repair: %w", err)
	}
	defer lock.release()
	defer func() { err = errors.Join(err, giveToOwner(r.data.Data, true)) }()
	if err := r.database(ctx); err != nil {
		return err
	}
	s, err := openBoth(ctx, r.data, sqlite.Options{Now: r.now})
	if err != nil {
		return err
	}
	if err = s.records.Files().RecountStorage(ctx); err == nil {
		err = r.unknown(ctx, s)
	}
	return errors.Join(err, s.close())
}

func (r *repair) database(ctx context.Context) error {
	database := r.data.database()
	_, err := checkStorage(ctx, r.data, checkTimeOfRepair)
	var mismatch *mismatchError
	switch {
	case err == nil:
		return r.report(finding{Check: "database", State: fine,
			Detail: database + " is sound and complete"})
	case errors.Is(err, integrity.ErrDamaged), errors.Is(err, integrity.ErrLostMain):
		kept, err := sqlite.SetAside(database, r.now())
		if err != nil {
			return err
		}
		return r.report(finding{"database", warning,
			"the server will create a new database; the old one was kept as " + strings.Join(kept, " and "),
			"sqlite3 FILE .recover saves its remaining data."})
	case errors.As(err, &mismatch):
		return r.report(finding{"database", warning, mismatch.why() + ": accepted from now on", ""})
	}
	return err
}

func (r *repair) unknown(ctx context.Context, s storage) error {
	quiet := slog.New(slog.DiscardHandler)
	jobs := &job.Sweeper{Store: s.records.Jobs(), Blobs: s.blobs, Now: r.now, Logger: quiet}
	files := &file.Sweeper{Store: s.records.Files(), Blobs: s.blobs, Now: r.now, Logger: quiet}
	batches := &batch.Sweeper{Store: s.records.Batches(), Blobs: s.blobs, Shelf: s.blobs, Now: r.now}
	if _, err := s.setAsideUnknown(ctx, jobs, files, batches); err != nil {
		return err
	}
	if err := s.putBackKnown(ctx, quiet); err != nil {
		return err
	}
	all, err := s.blobs.ListAside(ctx)
	if err != nil {
		return err
	}
	for _, set := range all {
		detail := fmt.Sprintf("%s, %s, set aside on %s", set.Name, humanize.IBytes(uint64(set.Size)), set.Day.Format(time.DateOnly))
		if err := r.report(finding{"unknown", warning, detail, ""}); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return r.report(finding{Check: "unknown", State: fine, Detail: "every file has a record in the database"})
	}
	return r.report(finding{"unknown", warning,
		fmt.Sprintf("%d files without a record are set aside and will be deleted after seven days",
			len(all)),
		"To keep one, copy it from blobs/.unknown in the data folder and upload it."})
}

func (c *doctorCommand) repairWith(ctx context.Context, s *command.Invocation) error {
	r := &repair{
		data: c.Server.dataFlag, now: time.Now,
		report: func(found finding) error { return c.print(s, found) },
	}
	return r.run(ctx)
}
