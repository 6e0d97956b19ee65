package clock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

type last struct {
	time time.Time
	// elapsed is the time since the machine booted; boot identifies the boot.
	elapsed time.Duration
	boot    string
}

// The length is constant, so that overwriting the file needs no free disk space.
const lastForm = "cutroom-clock %020d %020d %s\n"

func readLast(path string) (l last, kept bool, err error) {
	// Opening a pipe would block until it has a writer.
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
		return last{}, false, nil //nolint:nilerr // for example, it was written when the disk was full
	}
	l.time = time.UnixMilli(milliseconds)
	return l, true, nil
}

// If the write fails, the next start has only an older time, which is harmless.
func (k *Clock) keep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil {
		return
	}
	elapsed := k.Elapsed()
	_, _ = k.file.WriteAt(fmt.Appendf(nil, lastForm, k.at(elapsed).UnixMilli(), int64(elapsed), k.Boot), 0)
}

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
