package mcpserver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cutroom/shared/client"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/sniff"
)

// Folder is the only folder whose files the tools read and write.
//
// It rejects paths that lead out of the folder. It also rejects paths through a symbolic link, because the link
// may have been made for another purpose. Even if the folder changes between the check and the use, a path cannot
// lead out of it, because the operating system resolves paths inside it.
type Folder struct {
	root *os.Root
	// paths holds the absolute paths of the folder: as given, and with symbolic links resolved.
	paths []string
}

// OpenFolder opens a folder, which the caller must close.
func OpenFolder(path string) (*Folder, error) {
	named, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(named)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	return &Folder{root, []string{named, real}}, nil
}

func (f *Folder) Close() error { return f.root.Close() }

func (f *Folder) Path() string { return f.paths[0] }

type OutsideError struct{ Path, Folder, Why string }

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%s %s: only files in %s can be used; the user can allow another folder with the flag --folder of "+
		"\"cutroom mcp\"", e.Path, e.Why, e.Folder)
}

// name returns the path relative to the folder, or an [*OutsideError].
func (f *Folder) name(path string) (string, error) {
	name := path
	if filepath.IsAbs(path) {
		for _, folder := range f.paths {
			if below, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(below) {
				name = below
				break
			}
		}
	}
	if name = filepath.Clean(name); !filepath.IsLocal(name) {
		return "", &OutsideError{path, f.Path(), "is outside the allowed folder"}
	}
	for part := name; part != "."; part = filepath.Dir(part) {
		info, err := f.root.Lstat(part)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "", &OutsideError{path, f.Path(), "is or contains a symbolic link, which is not followed"}
		}
	}
	return name, nil
}

// source returns a media file from the folder, and its type.
//
// Errors: [*OutsideError]; disk errors; an error if the file is not media.
func (f *Folder) source(path string) (client.Source, media.Type, error) {
	name, err := f.name(path)
	if err != nil {
		return client.Source{}, media.Type{}, err
	}
	info, err := f.root.Lstat(name)
	if err != nil {
		return client.Source{}, media.Type{}, plain(path, err)
	}
	if !info.Mode().IsRegular() {
		return client.Source{}, media.Type{}, fmt.Errorf("%s is not a file", path)
	}
	source := client.Source{Name: filepath.Base(name), Size: info.Size(), Open: func() (io.ReadCloser, error) {
		file, err := f.root.Open(name)
		if err != nil {
			return nil, plain(path, err)
		}
		// The announced length is fixed. If a file grows during the upload, the added bytes are not sent.
		return struct {
			io.Reader
			io.Closer
		}{io.LimitReader(file, info.Size()), file}, nil
	}}
	kind, err := typeOf(source)
	if err != nil {
		return client.Source{}, media.Type{}, fmt.Errorf("%s %w", path, err)
	}
	return source, kind, nil
}

// typeOf detects a source's type from its content. Only media is sent, because text that an agent
// has read must not make the agent upload a file with secrets.
func typeOf(source client.Source) (media.Type, error) {
	content, err := source.Open()
	if err != nil {
		return media.Type{}, err
	}
	defer content.Close()
	head, err := io.ReadAll(io.LimitReader(content, media.SniffLen))
	if err != nil {
		return media.Type{}, err
	}
	if kind, known := sniff.Media(head); known {
		return kind, nil
	}
	names := media.Names(func(media.Type) bool { return true })
	return media.Type{}, fmt.Errorf("is not a video or picture in a format that the service supports (%s)", strings.Join(names, ", "))
}

func plain(path string, err error) error {
	var trouble *fs.PathError
	if errors.As(err, &trouble) {
		err = trouble.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

type draft struct {
	*os.File
	folder *Folder
	name   string
}

// draft creates a file with a temporary name in the folder `below`. id makes the name unique.
func (f *Folder) draft(below, id string) (*draft, error) {
	own := filepath.Join(below, ".cutroom-"+id+".part")
	file, err := f.root.OpenFile(own, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	if err != nil {
		return nil, plain(below, err)
	}
	return &draft{file, f, own}, nil
}

// discard removes the draft unless it was kept.
func (d *draft) discard() {
	d.Close()
	_ = d.folder.root.Remove(d.name)
}

// keep atomically renames the draft to its final name. It replaces an existing file only if
// overwrite is set, even if that file was created just now.
func (d *draft) keep(name string, overwrite bool) error {
	if err := d.Close(); err != nil {
		return err
	}
	root := d.folder.root
	if overwrite {
		return root.Rename(d.name, name)
	}
	err := root.Link(d.name, name)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// Some file systems have no hard links. There, an empty file reserves the name.
		var held *os.File
		if held, err = root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666); err == nil {
			if err = held.Close(); err == nil {
				return root.Rename(d.name, name)
			}
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return taken(name)
	}
	return err
}

// taken returns the error for a path that already exists.
func taken(name string) error {
	return fmt.Errorf("%s exists already: choose another path, or set overwrite if the user wants it replaced", name)
}

func (f *Folder) free(name string) error {
	if _, err := f.root.Lstat(name); err == nil {
		return taken(name)
	}
	return nil
}
