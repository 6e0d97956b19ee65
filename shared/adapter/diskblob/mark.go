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

// markFile is the file in the root that holds the mark. No blob can have its name.
const markFile = ".mark"

// markForm is how a mark is written. All marks of a database are of one length, so
// that writing one over another needs no room.
const markForm = "cutroom %s %020d\n"

// ReadMark gives the mark of a root, zero where there is none that can be read.
// The root need not be open.
func ReadMark(root string) (integrity.Mark, error) {
	content, err := os.ReadFile(filepath.Join(root, markFile))
	if errors.Is(err, fs.ErrNotExist) {
		return integrity.Mark{}, nil
	}
	if err != nil {
		return integrity.Mark{}, fileError("read the mark", err)
	}
	var mark integrity.Mark
	if _, err := fmt.Sscanf(string(content), markForm, &mark.Database, &mark.Writes); err != nil {
		return integrity.Mark{}, nil // written when the disk was full, for one
	}
	return mark, nil
}

// Marker keeps the mark of a root. What it was told survives the end of the
// process in any case, and that of the machine by half a minute: the count may
// then be too low, which tells less, and never too high.
type Marker struct {
	mu       sync.Mutex
	file     *os.File
	database string
	writes   int64
}

// Marker writes the mark of a database durably, and keeps it from then on.
//
// Errors: fault.StorageFull.
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

// writeMark makes the file anew.
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

// Advance notes that the database has had so many writes. A failure changes
// nothing for the caller: a lower mark tells less, and hurts nobody.
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

// Close brings the mark to the disk and lets go of it.
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
