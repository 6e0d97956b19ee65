package diskblob

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/blob"
)

// aside is the folder below the root for blobs without a record: a folder for each
// day on which anything was set aside, and in it the blobs under their names.
const aside = ".unknown"

// dayForm is the format of a day's folder name.
const dayForm = "2006-01-02"

// Aside is a blob that was set aside.
type Aside struct {
	// Name is the blob's name, such as "files/file_0x…".
	Name string
	// Day is the day on which it was set aside, in UTC.
	Day time.Time
	blob.Info
	// path is the file that holds it now.
	path string
}

// SetAside moves a blob, or everything below a prefix, out of the store without
// deleting it, and returns the number of blobs. It removes prefixes without blobs, and
// leaves newcomers where they are (see RememberNewcomers).
func (s *Store) SetAside(ctx context.Context, name string, now time.Time) (blobs int, err error) {
	path, err := s.path(name)
	if err != nil || s.newcomers.have(path) {
		return 0, err
	}
	if blobs, err = s.count(ctx, path); err != nil || blobs == 0 {
		return 0, errors.Join(err, s.DeleteAll(ctx, name))
	}
	target := filepath.Join(s.root, aside, now.UTC().Format(dayForm), filepath.FromSlash(name))
	for n := 1; ; n++ {
		if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
			break
		}
		// A blob of this name was set aside before on the same day.
		target = filepath.Join(s.root, aside, now.UTC().Format(dayForm)+"."+strconv.Itoa(n), filepath.FromSlash(name))
	}
	s.folders.Lock()
	defer s.folders.Unlock()
	if s.newcomers.have(path) {
		return 0, nil // since it was counted
	}
	if _, err := makeFolders(filepath.Dir(target)); err != nil {
		return 0, fileError("set aside", err)
	}
	if err := os.Rename(path, target); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return 0, nil // somebody else has moved it
		}
		return 0, fileError("set aside", err)
	}
	return blobs, fileError("set aside", errors.Join(syncFolder(filepath.Dir(target)), syncFolder(filepath.Dir(path))))
}

// count returns how many files are at or below a path, including files whose names
// no blob can have: they belong to somebody too.
func (s *Store) count(ctx context.Context, path string) (files int, err error) {
	err = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files++
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, ctx.Err())
	})
	return files, fileError("set aside", err)
}

// ListAside returns what was set aside and still exists.
func (s *Store) ListAside(ctx context.Context) ([]Aside, error) {
	days, err := s.asideDays()
	if err != nil {
		return nil, err
	}
	var all []Aside
	for _, day := range days {
		below := &Store{root: day.path}
		for entry, err := range below.List(ctx, "") {
			if err != nil {
				return nil, err
			}
			all = append(all, Aside{
				Name: entry.Name, Day: day.Day, Info: entry.Info,
				path: filepath.Join(day.path, filepath.FromSlash(entry.Name)),
			})
		}
	}
	return all, nil
}

// asideDays returns the folders of the days, earliest first.
func (s *Store) asideDays() ([]Aside, error) {
	entries, err := os.ReadDir(filepath.Join(s.root, aside))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var days []Aside
	for _, entry := range entries {
		date, _, _ := strings.Cut(entry.Name(), ".")
		if day, err := time.Parse(dayForm, date); err == nil && entry.IsDir() {
			days = append(days, Aside{Day: day, path: filepath.Join(s.root, aside, entry.Name())})
		}
	}
	return days, fileError("list what was set aside", err)
}

// PutBack moves a blob that was set aside back under its name, if that is free.
func (s *Store) PutBack(ctx context.Context, set Aside) error {
	return s.PutBackAs(ctx, set, set.Name)
}

// PutBackAs is PutBack under another name.
func (s *Store) PutBackAs(ctx context.Context, set Aside, name string) error {
	path, err := s.path(name)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fileError("put back", fs.ErrExist)
	}
	return fileError("put back", errors.Join(s.rename(set.path, path), syncFolder(filepath.Dir(set.path))))
}

// DropAside deletes a blob that was set aside.
func (s *Store) DropAside(ctx context.Context, set Aside) error {
	if err := os.Remove(set.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileError("drop", err)
	}
	return nil
}

// DropAsideBefore deletes what was set aside on days that ended before the time,
// and returns the number of blobs.
func (s *Store) DropAsideBefore(ctx context.Context, before time.Time) (blobs int, err error) {
	days, err := s.asideDays()
	if err != nil {
		return 0, err
	}
	for _, day := range days {
		if err := ctx.Err(); err != nil {
			return blobs, err
		}
		if day.Day.AddDate(0, 0, 1).After(before) {
			continue
		}
		n := 0
		for _, err := range (&Store{root: day.path}).List(ctx, "") {
			if err != nil {
				return blobs, err
			}
			n++
		}
		if err := os.RemoveAll(day.path); err != nil {
			return blobs, fileError("drop", err)
		}
		blobs += n
	}
	return blobs, nil
}
