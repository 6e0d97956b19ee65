package realtime

import (
	"cmp"
	"errors"
	"io"
	"runtime/debug"
	"sync"
)

// smallText is the maximum size of a message that is not counted, in bytes.
const smallText = 64 << 10

// defaultTextMemory is the default limit on the total size of an account's larger unhandled messages, in bytes.
const defaultTextMemory = 3 * maxText

// keptPart is the inverse of the part of this limit that applies to the messages kept for waiting clients.
const keptPart = 4

// All accounts together may use accountsOfTexts times an account's limit. A quarter of this total is reserved for
// accounts that use at most 1/shareOfTexts of the total.
const (
	accountsOfTexts = 3
	shareOfTexts    = 32
)

// returnedPeak is the peak memory use, in bytes, above which memory is returned to the system once
// all texts are released.
const returnedPeak = 32 << 20

var errTexts = errors.New("the memory for messages is used up")

// texts counts the bytes of messages that are being read or handled: texts, and frames until they have been edited.
type texts struct {
	perAccount int64

	mu   sync.Mutex
	held int64
	// peak is the highest value of held since held was last 0.
	peak     int64
	accounts map[string]int64
}

// newTexts returns a counter with a limit per account, in bytes; 0 means the default.
func newTexts(perAccount int64) *texts {
	return &texts{perAccount: cmp.Or(perAccount, defaultTextMemory), accounts: map[string]int64{}}
}

func (t *texts) take(account string, bytes int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	total, sum := accountsOfTexts*t.perAccount, t.accounts[account]+bytes
	limit := total
	if sum > total/shareOfTexts {
		limit -= total / 4
	}
	if t.held+bytes > limit || sum > t.perAccount {
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

// release stops counting the message. It may be called more than once.
func (r *textReader) release() {
	if r.counted > 0 {
		r.texts.release(r.account, r.counted)
		r.counted = 0
	}
}
