package diskblob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// rename durably gives a file its name, replacing any existing file. If it fails, it removes the folders it created.
func (s *Store) rename(from, path string) error {
	folder := filepath.Dir(path)
	s.newcomers.add(s.root, path)
	s.folders.RLock()
	err := os.Rename(from, path)
	s.folders.RUnlock()
	if errors.Is(err, fs.ErrNotExist) {
		err = s.renameInto(folder, from, path)
	}
	if err != nil {
		return err
	}
	return syncFolder(folder)
}

func (s *Store) renameInto(folder, from, path string) error {
	s.folders.Lock()
	defer s.folders.Unlock()
	made, err := makeFolders(folder)
	if err == nil {
		err = os.Rename(from, path)
	}
	if err != nil {
		for _, folder := range made {
			err = errors.Join(err, os.Remove(folder))
		}
	}
	return err
}

// makeFolders durably creates a folder and its missing parents. It returns the created folders,
// innermost first, even if there is an error.
func makeFolders(path string) (made []string, err error) {
	err = os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if made, err = makeFolders(filepath.Dir(path)); err != nil {
			return made, err
		}
		err = os.Mkdir(path, 0o700)
	}
	if errors.Is(err, fs.ErrExist) {
		return made, nil
	}
	if err != nil {
		return made, err
	}
	return append([]string{path}, made...), syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the folder was removed, and so were its entries
		}
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
