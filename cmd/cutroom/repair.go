package main

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/integrity"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/sniff"
)

type repairFlags struct {
	Repair bool     `help:"Repair the data folder of a stopped server: accept the existing database and list files without a record."`
	Adopt  string   `placeholder:"ACCOUNT" help:"With --repair: add the files without a record to the account."`
	Drop   bool     `help:"With --repair: delete the files without a record."`
	Only   []string `placeholder:"NAME" help:"With --adopt or --drop: only these of the listed files, separated by commas."`
}

func (f repairFlags) Validate() error {
	switch {
	case !f.Repair && (f.Adopt != "" || f.Drop):
		return errors.New("--adopt and --drop need --repair")
	case f.Adopt != "" && f.Drop:
		return errors.New("--adopt and --drop cannot be used together")
	case len(f.Only) > 0 && f.Adopt == "" && !f.Drop:
		return errors.New("--only needs --adopt or --drop")
	}
	return nil
}

type repair struct {
	repairFlags
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
	missing, err := s.countMissing(ctx, r.now())
	if err != nil {
		return err
	}
	if missing > 0 {
		if err := r.report(finding{"missing", warning, fmt.Sprintf("%d files and results in the database are missing",
			missing),
			"Restore the blobs folder from a backup; requests for missing files get 404."}); err != nil {
			return err
		}
	}
	all, err := s.blobs.ListAside(ctx)
	if err != nil {
		return err
	}
	for _, name := range r.Only {
		if !slices.ContainsFunc(all, func(set diskblob.Aside) bool { return set.Name == name }) {
			return fmt.Errorf("--only: no unknown file has the name %s", name)
		}
	}
	key, err := r.keyOfAdopter(ctx, s)
	if err != nil {
		return err
	}
	for _, set := range all {
		if err := r.settle(ctx, s, set, key); err != nil {
			return err
		}
	}
	left, err := s.blobs.ListAside(ctx)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		return r.report(finding{Check: "unknown", State: fine, Detail: "every file has a record in the database"})
	}
	return r.report(finding{"unknown", warning,
		fmt.Sprintf("%d files without a record are set aside and will be deleted after CUTROOM_UNKNOWN_DAYS days",
			len(left)),
		"cutroom doctor --repair --adopt ACCOUNT adds them to an account; --drop deletes them now."})
}

// keyOfAdopter returns the id of one of the adopting account's keys, or "" if no account adopts files.
func (r *repair) keyOfAdopter(ctx context.Context, s storage) (string, error) {
	if r.Adopt == "" {
		return "", nil
	}
	keys, err := s.records.Keys().ListKeys(ctx, r.Adopt)
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("--adopt: the account %s has no key; make one with cutroom keys create", r.Adopt)
	}
	if err != nil {
		return "", err
	}
	return keys[0].ID, nil
}

func (r *repair) settle(ctx context.Context, s storage, set diskblob.Aside, key string) error {
	meant := len(r.Only) == 0 || slices.Contains(r.Only, set.Name)
	detail := fmt.Sprintf("%s, %s, set aside on %s", set.Name, humanize.IBytes(uint64(set.Size)),
		set.Day.Format(time.DateOnly))
	switch {
	case meant && r.Drop:
		if err := s.blobs.DropAside(ctx, set); err != nil {
			return err
		}
		return r.report(finding{Check: "unknown", State: fine, Detail: detail + ": deleted"})
	case meant && r.Adopt != "":
		f, err := r.adopt(ctx, s, set, key)
		if err != nil {
			return fmt.Errorf("adopt %s: %w", set.Name, err)
		}
		return r.report(finding{Check: "unknown", State: fine,
			Detail: fmt.Sprintf("%s: now the file %s of the account %s", detail, f.ID, f.Account)})
	}
	return r.report(finding{"unknown", warning, detail, ""})
}

// adopt stores an unknown blob as a file of the account. The file does not expire.
func (r *repair) adopt(ctx context.Context, s storage, set diskblob.Aside, key string) (file.File, error) {
	service := file.NewService(file.Config{
		Store: s.records.Files(), Blobs: s.blobs, IDs: file.NewIDs(r.now, rand.Reader), Now: r.now,
	})
	blob, err := service.NewBlob()
	if err != nil {
		return file.File{}, err
	}
	if err := s.blobs.PutBackAs(ctx, set, blob); err != nil {
		return file.File{}, err
	}
	// If a later step fails, the next start sets the blob aside again.
	f := file.File{
		Account: r.Adopt, Key: key, Blob: blob, MIME: "application/octet-stream",
		Filename: "recovered-" + strings.ReplaceAll(path.Base(set.Name), file.SignedSuffix, ""),
	}
	content, err := s.blobs.Open(ctx, blob, 0, -1)
	if err != nil {
		return file.File{}, err
	}
	defer content.Close()
	head := make([]byte, media.SniffLen)
	n, err := io.ReadFull(content, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return file.File{}, err
	}
	if mime, told := sniff.Any(head[:n]); told {
		f.MIME = mime
	}
	sum := md5.New() //nolint:gosec // the interface reports MD5 sums
	sum.Write(head[:n])
	rest, err := io.Copy(sum, content)
	if err != nil {
		return file.File{}, err
	}
	f.Size, f.MD5 = int64(n)+rest, hex.EncodeToString(sum.Sum(nil))
	return service.Create(ctx, f, 0)
}

func (c *doctorCommand) repairWith(ctx context.Context, s *command.Invocation) error {
	r := &repair{
		repairFlags: c.repairFlags, data: c.Server.dataFlag, now: time.Now,
		report: func(found finding) error { return c.print(s, found) },
	}
	return r.run(ctx)
}
