package realtime

import (
	"cmp"
	"errors"
	"io"
	"runtime/debug"
	"sync"
)

// smallText is how long a text message may be without being counted, in bytes: only
// one with an image is longer.
const smallText = 64 << 10

// defaultTextMemory is how many bytes the longer ones of an account may have together
// from their arrival until they are handled: three of the longest. Each byte costs a
// few more while it is decoded.
const defaultTextMemory = 3 * maxText

// accountsOfTexts is how many accounts may hold all that they may at once.
const accountsOfTexts = 3

// returnedPeak is from when on the memory of texts goes back to the system as soon as
// none is held, in bytes: by itself it stays for minutes.
const returnedPeak = 32 << 20

// errTexts says that there is no memory for a text message.
var errTexts = errors.New("there is no memory for the message")

// texts counts what the text messages hold that are being read or handled.
type texts struct {
	perAccount int64

	mu   sync.Mutex
	held int64
	// peak is the most that was held since nothing was.
	peak     int64
	accounts map[string]int64
}

// newTexts allows so many bytes for each account; 0 means the default.
func newTexts(perAccount int64) *texts {
	return &texts{perAccount: cmp.Or(perAccount, defaultTextMemory), accounts: map[string]int64{}}
}

// take counts the bytes for an account, and reports whether there was room.
func (t *texts) take(account string, bytes int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held+bytes > accountsOfTexts*t.perAccount || t.accounts[account]+bytes > t.perAccount {
		return false
	}
	t.held += bytes
	t.peak = max(t.peak, t.held)
	t.accounts[account] += bytes
	return true
}

func (t *texts) release(account string, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held -= bytes; t.held == 0 {
		if t.peak > returnedPeak {
			go debug.FreeOSMemory()
		}
		t.peak = 0
	}
	if t.accounts[account] -= bytes; t.accounts[account] == 0 {
		delete(t.accounts, account)
	}
}

// textReader reads a text message, and counts it as it arrives.
type textReader struct {
	texts   *texts
	account string
	source  io.Reader
	read    int64
	counted int64
}

// Read reads as the source does.
//
// Errors: those of the source; errTexts.
func (r *textReader) Read(p []byte) (int, error) {
	n, err := r.source.Read(p)
	if r.read += int64(n); r.read > smallText {
		more := r.read - r.counted
		if !r.texts.take(r.account, more) {
			return n, errTexts
		}
		r.counted += more
	}
	return n, err
}

// release gives back what was counted. It may be called again.
func (r *textReader) release() {
	if r.counted > 0 {
		r.texts.release(r.account, r.counted)
		r.counted = 0
	}
}
