package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// renameTries is how often a rename makes the folder of its target, which a
// DeleteAll of the same moment can take away again.
const renameTries = 3

// rename gives a file its name in the store, durably, and replaces what has it.
func rename(from, path string) error {
	folder := filepath.Dir(path)
	err := os.Rename(from, path)
	for try := 0; errors.Is(err, fs.ErrNotExist) && try < renameTries; try++ {
		var made []string
		if made, err = makeFolders(folder); err == nil {
			err = os.Rename(from, path)
		}
		if err != nil {
			for _, folder := range made {
				os.Remove(folder) // fails, as it should, where another blob came
			}
		}
	}
	if err != nil {
		return err
	}
	return syncFolder(folder)
}

// makeFolders makes a folder and those above it that are missing, durably. It
// gives those that it made, the innermost first, also with an error.
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

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // its names went with it
		}
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
