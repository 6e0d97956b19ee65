package move

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
)

// The journal is a blob of the target: the names and sizes of the blobs that moves from a
// source have copied or were about to copy. It is written before they are, so that what an
// attempt leaves there and the source then deletes is found by the next one, whether its
// record got there or not. It is deleted when the move is done.

// journalName is the name of a source's journal. No file, job or batch has its prefix, which
// no lifecycle of the bucket deletes.
func journalName(source string) string { return "moves/" + source }

// replacedWithin is by how much the clocks of source and target may differ. A blob that may
// have been stored anew at the source since it was copied is copied again.
const replacedWithin = time.Minute

// CopyBlobs copies the blobs that are not there yet, which may be done ahead, while the
// source is served. It returns how many those were. Once the deploy is served it has changed and
// deleted some itself, so then there is nothing to copy.
//
// Errors: ErrServed if it is.
func (m Mover) CopyBlobs(ctx context.Context, source string) (copied int, err error) {
	state, err := m.Target.Ledger(ctx, source)
	if err != nil {
		return 0, err
	}
	if state != None && state != Begun {
		return 0, ErrServed
	}
	return m.copyBlobs(ctx, source, false)
}

// copyBlobs copies the blobs that are not there yet. If remove is set it deletes what was
// copied before and the source has no longer; otherwise that stays in the journal.
func (m Mover) copyBlobs(ctx context.Context, source string, remove bool) (copied int, err error) {
	earlier, err := m.readJournal(ctx, source)
	if err != nil {
		return 0, fmt.Errorf("read the journal of the move: %w", err)
	}
	defer earlier.close()
	now, err := newJournal()
	if err != nil {
		return 0, err
	}
	defer now.close()
	err = each(m.gone(ctx, earlier), func(b blob.Entry) error {
		if remove {
			return m.Store.Delete(ctx, b.Name)
		}
		return now.add(b)
	})
	if err != nil {
		return 0, err
	}
	if err := each(m.Blobs.List(ctx, ""), now.add); err != nil {
		return 0, err
	}
	written, err := now.reader()
	if err == nil {
		_, err = m.Store.Put(ctx, journalName(source), written)
	}
	if err != nil {
		return 0, fmt.Errorf("write the journal of the move: %w", err)
	}
	// Only what is in the journal: a server that goes on stores more meanwhile.
	return copied, each(now.entries(), func(b blob.Entry) error {
		done, err := m.copyBlob(ctx, b)
		if done {
			copied++
		}
		return err
	})
}

// copyBlob copies a blob unless it is there already, and reports whether it did.
func (m Mover) copyBlob(ctx context.Context, b blob.Entry) (done bool, err error) {
	have, err := m.Store.Head(ctx, b.Name)
	if err == nil && have.Size == b.Size && have.StoredAt.After(b.StoredAt.Add(replacedWithin)) {
		return false, nil
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	r, err := m.Blobs.Open(ctx, b.Name, 0, -1)
	if fault.Is(err, fault.NotFound) {
		return false, nil // deleted since it was listed
	}
	if err != nil {
		return false, err
	}
	defer r.Close()
	if _, err := m.Store.Put(ctx, b.Name, r); err != nil {
		return false, fmt.Errorf("%s: %w", b.Name, err)
	}
	return true, nil
}

// gone returns the blobs of a journal that the source has no longer.
func (m Mover) gone(ctx context.Context, j *journal) iter.Seq2[blob.Entry, error] {
	return func(yield func(blob.Entry, error) bool) {
		for b, err := range j.entries() {
			if err == nil {
				var r io.ReadCloser
				if r, err = m.Blobs.Open(ctx, b.Name, 0, 0); err == nil {
					r.Close()
					continue
				}
				if fault.Is(err, fault.NotFound) {
					err = nil
				}
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// readJournal returns a copy of the target's journal on this machine, which is empty if
// there is none: the blobs that it leads to take longer than a download stays open.
func (m Mover) readJournal(ctx context.Context, source string) (*journal, error) {
	j, err := newJournal()
	if err != nil {
		return nil, err
	}
	r, err := m.Store.Open(ctx, journalName(source), 0, -1)
	if fault.Is(err, fault.NotFound) {
		return j, nil
	}
	if err == nil {
		_, err = io.Copy(j.lines, r)
		r.Close()
	}
	if err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

// journal is a journal in a temporary file, whose lines are the size of a blob, when it was
// stored, in nanoseconds since 1970, and its name.
type journal struct {
	file  *os.File
	lines *bufio.Writer
}

func newJournal() (*journal, error) {
	file, err := os.CreateTemp("", "cutroom-move-")
	if err != nil {
		return nil, err
	}
	// Where a file that is open can lose its name, a move that is killed leaves none.
	os.Remove(file.Name())
	return &journal{file, bufio.NewWriter(file)}, nil
}

func (j *journal) close() {
	j.file.Close()
	os.Remove(j.file.Name()) // where it has kept it
}

func (j *journal) add(b blob.Entry) error {
	_, err := fmt.Fprintf(j.lines, "%d %d %s\n", b.Size, b.StoredAt.UnixNano(), b.Name)
	return err
}

// reader returns what reads the journal from its beginning.
func (j *journal) reader() (io.Reader, error) {
	if err := j.lines.Flush(); err != nil {
		return nil, err
	}
	_, err := j.file.Seek(0, io.SeekStart)
	return j.file, err
}

// entries returns the blobs of the journal, as they were when it was written.
func (j *journal) entries() iter.Seq2[blob.Entry, error] {
	return func(yield func(blob.Entry, error) bool) {
		r, err := j.reader()
		if err != nil {
			yield(blob.Entry{}, err)
			return
		}
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			b, err := readLine(lines.Text())
			if !yield(b, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(blob.Entry{}, err)
		}
	}
}

// readLine reads a line of a journal.
func readLine(line string) (b blob.Entry, err error) {
	var stored int64
	if _, err := fmt.Sscanf(line, "%d %d %s", &b.Size, &stored, &b.Name); err != nil {
		return b, fmt.Errorf("the journal of the move has the line %q: %w", line, err)
	}
	b.StoredAt = time.Unix(0, stored)
	return b, nil
}
