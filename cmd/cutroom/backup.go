package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"cutroom/cmd/cutroom/command"
	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/integrity"
	"cutroom/shared/platform/durable"
	"cutroom/shared/service/backup"
)

// savedSettings lists the files in the data folder that a backup includes. Without these secrets,
// all links and cursors would become invalid.
var savedSettings = []string{"secret", tokenKeyName, "metrics-key", "dev-key", signerName, signersName}

// backupCommand saves the data folder, even while a server uses it.
type backupCommand struct {
	dataFlag
	To     string `arg:"" placeholder:"FOLDER" help:"Target: a folder outside the data folder, or s3://BUCKET/PREFIX."`
	Reread bool   `help:"Check the files of earlier backups in the target and replace damaged ones."`
}

func (c *backupCommand) Run(ctx context.Context, out *command.Invocation) error {
	if _, err := os.Stat(c.Data); err != nil {
		return fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	if err := checkNotLost(ctx, c.dataFlag); err != nil {
		return fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	if err := checkApart(c.Data, c.To); err != nil {
		return err
	}
	store, release, err := openStore(ctx, c.To)
	if err != nil {
		return err
	}
	defer release()
	blobs, err := diskblob.NewView(c.blobFolder())
	if err != nil {
		return err
	}
	settings := map[string]string{}
	for _, name := range savedSettings {
		settings[name] = filepath.Join(c.Data, name)
	}
	removeLeftWork(c.Data)
	began := time.Now()
	report, err := backup.Saver{
		Source:  backup.Source{Snapshot: c.snapshot, Blobs: blobs, Settings: settings},
		Store:   store,
		Work:    c.Data,
		Version: out.Version,
		Reread:  c.Reread,
		Now:     time.Now,
		NewID:   rand.Text,
	}.Save(ctx)
	if err != nil {
		return fmt.Errorf("back up to %s: %w", c.To, err)
	}
	if out.JSON {
		return out.Print(report)
	}
	if report.Damaged > 0 {
		fmt.Fprintf(out.Err, "%d files of earlier backups were damaged; the files still in use were replaced.\n", report.Damaged)
	}
	fmt.Fprintf(out.Out, "Saved to %s in %s: the database (%s) and %s (%s); %s are new.\n", c.To,
		time.Since(began).Round(100*time.Millisecond), humanize.Bytes(uint64(report.Database.Size)),
		english.Plural(int(report.Blobs), "file", ""), humanize.Bytes(uint64(report.Bytes)),
		humanize.Bytes(uint64(report.Database.Size+report.NewBytes)))
	return nil
}

func (c *backupCommand) snapshot(ctx context.Context, into string) error {
	return sqlite.Snapshot(ctx, c.database(), into)
}

func removeLeftWork(data string) {
	left, _ := filepath.Glob(filepath.Join(data, backup.WorkPattern))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && info.IsDir() && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(path) // the next backup tries again
		}
	}
}

type restoreCommand struct {
	dataFlag
	From  string `arg:"" placeholder:"FOLDER" help:"Backup: a folder, or s3://BUCKET/PREFIX."`
	Check bool   `help:"Only read the backup and check that it is complete."`
}

func (c *restoreCommand) Run(ctx context.Context, out *command.Invocation) error {
	store, err := openBackup(ctx, c.From)
	if err != nil {
		return err
	}
	manifest, err := backup.Read(ctx, store)
	if err != nil {
		return fmt.Errorf("%s: %w", c.From, err)
	}
	if c.Check {
		if err := backup.Verify(ctx, store, manifest); err != nil {
			return fmt.Errorf("%s: %w; \"cutroom backup --reread\" replaces damaged files", c.From, err)
		}
		return c.report(out, "The backup of %s is complete: the database (%s) and %s (%s).\n", manifest)
	}
	if err := c.restore(ctx, store, manifest); err != nil {
		return err
	}
	return c.report(out, "Restored the backup of %s: the database (%s) and %s (%s).\n", manifest)
}

func (c *restoreCommand) report(out *command.Invocation, text string, m backup.Manifest) error {
	if out.JSON {
		return out.Print(m)
	}
	fmt.Fprintf(out.Out, text, m.MadeAt.Local().Format(time.DateTime), humanize.Bytes(uint64(m.Database.Size)),
		english.Plural(int(m.Blobs), "file", ""), humanize.Bytes(uint64(m.Bytes)))
	return nil
}

func (c *restoreCommand) restore(ctx context.Context, store backup.Opener, m backup.Manifest) (err error) {
	if err := checkApart(c.Data, c.From); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	lock, err := lockFolder(c.Data)
	if err != nil {
		return fmt.Errorf("stop the server before a restore: %w", err)
	}
	defer lock.release()
	defer func() { err = errors.Join(err, giveToOwner(c.Data, true)) }()
	if err := c.begin(ctx, m); err != nil {
		return err
	}
	blobs, err := diskblob.Open(c.blobFolder())
	if err != nil {
		return err
	}
	if err := sqlite.Present(c.database()); err == nil {
		return os.Remove(restoringFile(c.Data))
	}
	_, err = backup.Restore(ctx, store, m, backup.Target{Blobs: blobs, Setting: c.setting, Records: c.place})
	if err != nil {
		return fmt.Errorf("the restore is incomplete, run it again to continue: %w", err)
	}
	return os.Remove(restoringFile(c.Data))
}

// begin marks the data folder as being restored, so that no server starts with an incomplete copy.
// The folder must be empty or hold an incomplete restore of the same backup.
func (c *restoreCommand) begin(ctx context.Context, m backup.Manifest) error {
	begun, err := os.ReadFile(restoringFile(c.Data))
	if err == nil {
		if string(begun) != m.ID {
			return fmt.Errorf("%s contains part of another backup: empty it, or set --data to another folder", c.Data)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("CUTROOM_DATA: %w", err)
	}
	blobs, err := holdsBlobs(ctx, c.blobFolder())
	if err != nil {
		return err
	}
	if blobs || !errors.Is(sqlite.Present(c.database()), integrity.ErrNone) {
		return fmt.Errorf("%s already contains data: set --data to an empty folder", c.Data)
	}
	return durable.Write(restoringFile(c.Data), strings.NewReader(m.ID), nil)
}

func (c *restoreCommand) place(ctx context.Context, snapshot io.Reader) error {
	return sqlite.Place(ctx, c.database(), snapshot)
}

func (c *restoreCommand) setting(_ context.Context, name string, content io.Reader) error {
	for _, known := range savedSettings {
		if name == known {
			return durable.Write(filepath.Join(c.Data, name), content, nil)
		}
	}
	return nil // written by a later version of the program
}

const restoringName = "restoring"

// restoringFile returns the path of a file that exists during a restore. The file contains the backup's id.
func restoringFile(data string) string { return filepath.Join(data, restoringName) }

func checkNotRestoring(data string) error {
	_, err := os.Stat(restoringFile(data))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("the restore of %s is incomplete: run \"cutroom restore\" again with the same backup", data)
}

func openBackup(ctx context.Context, name string) (backup.Opener, error) {
	if strings.HasPrefix(name, bucketScheme) {
		return openBucket(ctx, name)
	}
	if _, err := os.Stat(name); err != nil {
		return nil, err
	}
	return diskblob.NewView(name)
}

// openStore opens a store for writing a backup. The returned function release closes it. A folder can have only one
// writer at a time.
func openStore(ctx context.Context, name string) (store backup.Store, release func(), err error) {
	if strings.HasPrefix(name, bucketScheme) {
		store, err := openBucket(ctx, name)
		return store, func() {}, err
	}
	if err := os.MkdirAll(name, 0o700); err != nil {
		return nil, nil, err
	}
	lock, err := lockFolder(name)
	if err != nil {
		return nil, nil, fmt.Errorf("another backup is running: %w", err)
	}
	if store, err = diskblob.Open(name); err != nil {
		lock.release()
		return nil, nil, err
	}
	return store, lock.release, nil
}

const bucketScheme = "s3://"

func openBucket(ctx context.Context, name string) (backup.Store, error) {
	bucket, prefix, _ := strings.Cut(strings.Trim(strings.TrimPrefix(name, bucketScheme), "/"), "/")
	if bucket == "" || prefix != "" && blob.CheckName(prefix) != nil {
		return nil, fmt.Errorf("%s must be s3://BUCKET/PREFIX with a prefix of letters, digits, '/', '.', '_' and '-'", name)
	}
	settings, err := deployer(ctx)
	if err != nil {
		return nil, err
	}
	return s3blob.NewBelow(settings, bucket, prefix), nil
}

func checkApart(data, kept string) error {
	if strings.HasPrefix(kept, bucketScheme) {
		return nil
	}
	inside, err := within(data, kept)
	if err == nil && !inside {
		inside, err = within(kept, data)
	}
	if err == nil && inside {
		err = fmt.Errorf("the backup %s and the data folder %s must be separate folders", kept, data)
	}
	return err
}

func within(folder, path string) (bool, error) {
	folder, err := resolved(folder)
	if err != nil {
		return false, err
	}
	if path, err = resolved(path); err != nil {
		return false, err
	}
	relative, err := filepath.Rel(folder, path)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, "../"), nil
}

// resolved returns the absolute path, with symbolic links resolved in the part that exists.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for missing := ""; ; {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, missing), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || path == "/" {
			return "", err
		}
		missing = filepath.Join(filepath.Base(path), missing)
		path = filepath.Dir(path)
	}
}
