package clock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// last is what a clock saves for the next one.
type last struct {
	time time.Time
	// elapsed is the time since the start of the machine that boot names.
	elapsed time.Duration
	boot    string
}

// lastForm has a fixed length for a machine, so that writing over it needs no free disk
// space.
const lastForm = "cutroom-clock %020d %020d %s\n"

// readLast returns what was saved; kept is false if nothing was.
func readLast(path string) (l last, kept bool, err error) {
	// Opening a pipe would wait for a writer.
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return last{}, false, nil
	}
	if err != nil {
		return last{}, false, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return last{}, false, err
	}
	var milliseconds int64
	if _, err := fmt.Sscanf(string(content), lastForm, &milliseconds, &l.elapsed, &l.boot); err != nil {
		return last{}, false, nil //nolint:nilerr // written when the disk was full, for one
	}
	l.time = time.UnixMilli(milliseconds)
	return l, true, nil
}

// keep writes the time over what was saved. If it fails the next start knows less;
// nothing else depends on it.
func (k *Clock) keep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil {
		return
	}
	elapsed := k.Elapsed()
	_, _ = k.file.WriteAt(fmt.Appendf(nil, lastForm, k.at(elapsed).UnixMilli(), int64(elapsed), k.Boot), 0)
}

// Close saves the time and closes the file.
func (k *Clock) Close() error {
	k.keep()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil {
		return nil
	}
	file := k.file
	k.file = nil
	return file.Close()
}
