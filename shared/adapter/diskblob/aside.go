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

// aside is the folder for blobs without a record. It contains one folder per day.
const aside = ".unknown"

const dayForm = "2006-01-02"

type Aside struct {
	Name string
	Day  time.Time // in UTC
	blob.Info
	path string
}

// SetAside moves a blob, or everything below a prefix, out of the store. It deletes prefixes that contain no blobs.
// It does not move blobs that were stored since RememberNewcomers was called.
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
		// A blob with this name has already been set aside today.
		target = filepath.Join(s.root, aside, now.UTC().Format(dayForm)+"."+strconv.Itoa(n), filepath.FromSlash(name))
	}
	s.folders.Lock()
	defer s.folders.Unlock()
	if s.newcomers.have(path) {
		return 0, nil // a newcomer was stored during the count
	}
	if _, err := makeFolders(filepath.Dir(target)); err != nil {
		return 0, fileError("set aside", err)
	}
	if err := os.Rename(path, target); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return 0, nil // another process moved it
		}
		return 0, fileError("set aside", err)
	}
	return blobs, fileError("set aside", errors.Join(syncFolder(filepath.Dir(target)), syncFolder(filepath.Dir(path))))
}

// count includes files whose names are not valid blob names, because someone may still need them.
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

// asideDays lists the folders of aside, oldest day first.
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
	return days, fileError("list the blobs set aside", err)
}

// PutBack moves a blob back to its name, unless the name is in use.
func (s *Store) PutBack(_ context.Context, set Aside) error {
	path, err := s.path(set.Name)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fileError("put back", fs.ErrExist)
	}
	return fileError("put back", errors.Join(s.rename(set.path, path), syncFolder(filepath.Dir(set.path))))
}

// DropAsideBefore deletes the blobs that were set aside before the day of the given time.
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
