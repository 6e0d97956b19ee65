package realtime

import (
	"cmp"
	"errors"
	"io"
	"runtime/debug"
	"sync"
)

// smallText is the maximum size of an uncounted text message, in bytes. Only messages with an image are
// larger.
const smallText = 64 << 10

// defaultTextMemory is the maximum number of bytes of an account's larger unhandled messages: three
// of the maximum size. Decoding adds a few bytes per byte.
const defaultTextMemory = 3 * maxText

// accountsOfTexts is the number of accounts that may use their full memory concurrently.
const accountsOfTexts = 3

// returnedPeak is a peak in bytes. From this peak on, the memory is returned to the system as soon
// as all texts are released. By default this would take minutes.
const returnedPeak = 32 << 20

// errTexts means that the memory for text messages is used up.
var errTexts = errors.New("the memory for text messages is used up")

// texts counts the bytes of text messages that are being read or handled.
type texts struct {
	perAccount int64

	mu   sync.Mutex
	held int64
	// peak is the highest count since the last time it was 0.
	peak     int64
	accounts map[string]int64
}

// newTexts returns texts with a limit in bytes for each account; 0 means the default.
func newTexts(perAccount int64) *texts {
	return &texts{perAccount: cmp.Or(perAccount, defaultTextMemory), accounts: map[string]int64{}}
}

// take counts bytes for an account. It returns false if they exceed the limit.
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

type textReader struct {
	texts   *texts
	account string
	source  io.Reader
	read    int64
	counted int64
}

// Read fails with errTexts at the limit.
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

// release ends the count. It may be called more than once.
func (r *textReader) release() {
	if r.counted > 0 {
		r.texts.release(r.account, r.counted)
		r.counted = 0
	}
}
