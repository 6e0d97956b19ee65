package diskblob

import (
	"cutroom/shared/domain/integrity"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// markFile cannot be the name of a blob.
const markFile = ".mark"

// All marks of a database have the same length, so overwriting needs no space.
const markForm = "cutroom %s %020d\n"

// ReadMark returns the mark of a root, or the zero mark if it is missing or invalid. It returns an
// error if the mark is not a regular file, because reading from a pipe might never end.
func ReadMark(root string) (integrity.Mark, error) {
	path := filepath.Join(root, markFile)
	var content []byte
	info, err := os.Lstat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = notMade(path)
	case err == nil:
		content, err = os.ReadFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return integrity.Mark{}, nil
	}
	if err != nil {
		return integrity.Mark{}, fileError("read the mark", err)
	}
	var mark integrity.Mark
	if _, err := fmt.Sscanf(string(content), markForm, &mark.Database, &mark.Writes); err != nil {
		return integrity.Mark{}, nil // for example, written on a full disk
	}
	return mark, nil
}

// Marker writes a root's mark. An advance survives a crash of the process at any time, and a crash of the machine
// half a minute later. Until then the mark may be too low, so that fewer losses are detected, but it is never too
// high.
type Marker struct {
	mu       sync.Mutex
	file     *os.File
	database string
	writes   int64
}

// Marker durably writes a database's mark and returns a Marker for its later advances.
func (s *Store) Marker(mark integrity.Mark) (*Marker, error) {
	path := filepath.Join(s.root, markFile)
	if kept, err := ReadMark(s.root); err != nil || kept.Database != mark.Database {
		if err == nil {
			err = s.writeMark(path, mark)
		}
		if err != nil {
			return nil, fileError("write the mark", err)
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fileError("write the mark", err)
	}
	m := &Marker{file: file, database: mark.Database}
	m.Advance(mark.Writes)
	return m, nil
}

func (s *Store) writeMark(path string, mark integrity.Mark) error {
	file, err := os.OpenFile(s.arrival(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(file, markForm, mark.Database, mark.Writes); err != nil {
		return discard(file, err)
	}
	if err := s.publish(file, path); err != nil {
		return discard(file, err)
	}
	return nil
}

// Advance records the database's number of writes. It ignores errors, because a mark that is too low does no harm.
func (m *Marker) Advance(writes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if writes <= m.writes || m.file == nil {
		return
	}
	if _, err := m.file.WriteAt(fmt.Appendf(nil, markForm, m.database, writes), 0); err == nil {
		m.writes = writes
	}
}

func (m *Marker) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		return nil
	}
	err := errors.Join(m.file.Sync(), m.file.Close())
	m.file = nil
	return fileError("close the mark", err)
}
