package main

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
)

// scratchNames matches the names of the server's entries in the engines' working folder.
var scratchNames = regexp.MustCompile(`^(job_[0-9A-Za-z]+|credentials|thumbnail|picture|cutroom-doctor|\.probe)-[0-9]+$`)

// emptyScratch removes an earlier run's files from the engines' working folder. It keeps the folder itself, because
// it may be a link to a folder with other files, and because a full disk may have no space for a new folder.
func emptyScratch(path string) error {
	folder, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	children, err := fs.ReadDir(folder.FS(), ".")
	for _, child := range children {
		if scratchNames.MatchString(child.Name()) {
			err = errors.Join(err, folder.RemoveAll(child.Name()))
		}
	}
	return err
}
