package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// Types of entries in the data folder.
const (
	// ownFile is a file that the server writes in place, truncates or removes. It must not be a link.
	ownFile = iota
	// anyFile is a file that may be a symbolic link, for example to a mounted secret.
	anyFile
	// anyFolder is a folder that may be a symbolic link, for example to a larger disk.
	anyFolder
)

// entries lists the names in the data folder that the program uses.
var entries = map[string]int{
	"lock": ownFile, "reserve": ownFile, "clock": ownFile, restoringName: ownFile,
	"secret": anyFile, tokenKeyName: anyFile, "metrics-key": anyFile, "dev-key": anyFile, signerName: anyFile,
	signersName:  anyFile,
	"cutroom.db": anyFile, "cutroom.db-wal": anyFile, "cutroom.db-shm": anyFile,
	"blobs": anyFolder, scratchName: anyFolder,
}

// checkEntries returns an error if an entry in the data folder has the wrong type, or is a link
// through which the program would change a file elsewhere.
func checkEntries(data string) error {
	for name, kind := range entries {
		path, look := filepath.Join(data, name), os.Stat
		if kind == ownFile {
			look = os.Lstat
		}
		info, err := look(path)
		if errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Lstat(path); err == nil {
				return fmt.Errorf("%s is a link to a missing file: create the file, or remove the link", path)
			}
			continue
		}
		if err != nil {
			return err
		}
		switch {
		case kind == anyFolder && !info.IsDir():
			return fmt.Errorf("%s is not a folder: move it elsewhere", path)
		case kind == ownFile && info.Mode().Type() == fs.ModeSymlink:
			return fmt.Errorf("%s is a link, and the server would change its target: remove the link", path)
		case kind != anyFolder && !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a file: move it elsewhere", path)
		}
		// Reject a second hard link. With it, another server could open the database under another name, and so with
		// a different write-ahead log.
		if of, ok := info.Sys().(*syscall.Stat_t); ok && name == "cutroom.db" && of.Nlink > 1 {
			return fmt.Errorf("%s has %d hard links: replace it with a copy of the file", path, of.Nlink)
		}
	}
	return nil
}

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
