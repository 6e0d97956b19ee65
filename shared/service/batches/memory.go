package batches

import (
	"context"
	"slices"
	"sync"
)

const (
	// callMemory bounds the long lines of all batches whose calls are made, and
	// checkMemory those that are looked at, which must not wait for slow calls, in
	// bytes; there may always be one. An account has half, or one line.
	callMemory, checkMemory = 64 << 20, 32 << 20
	// shortLine is how long a line is at most that counts for nothing: as many of them
	// as there are calls at once take no more than long ones. It is also what an input
	// is read by.
	shortLine = 64 << 10
)

// memory is what the long lines of all batches may hold together. A line that finds too
// little left waits: the next one is of the account that holds the least, and of those the
// one that came first.
type memory struct {
	total int64

	mu       sync.Mutex
	held     int64
	accounts map[string]int64
	waiting  []*claim
}

// claim is a line that waits for memory.
type claim struct {
	account string
	bytes   int64
	given   chan struct{}
}

func newMemory(total int64) *memory { return &memory{total: total, accounts: map[string]int64{}} }

// take waits until a line of the account may be in memory; release ends that. It reports
// whether it may: the context may end before.
func (m *memory) take(ctx context.Context, account string, bytes int64) bool {
	if bytes <= shortLine {
		return ctx.Err() == nil
	}
	mine := &claim{account, bytes, make(chan struct{})}
	m.mu.Lock()
	m.waiting = append(m.waiting, mine)
	m.handOut()
	m.mu.Unlock()
	select {
	case <-mine.given:
		return true
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := slices.Index(m.waiting, mine); at >= 0 {
		m.waiting = slices.Delete(m.waiting, at, at+1)
		m.handOut() // it may have kept others waiting
		return false
	}
	m.end(account, bytes) // it came at the same moment
	return false
}

// release ends what take has taken.
func (m *memory) release(account string, bytes int64) {
	if bytes <= shortLine {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end(account, bytes)
}

func (m *memory) end(account string, bytes int64) {
	m.held -= bytes
	if m.accounts[account] -= bytes; m.accounts[account] == 0 {
		delete(m.accounts, account)
	}
	m.handOut()
}

// handOut lets those in that have their turn, until one does not fit: it comes before any
// that is shorter, or it would wait forever. The lock is held.
func (m *memory) handOut() {
	for {
		next := -1
		for i, one := range m.waiting {
			held := m.accounts[one.account]
			if held > 0 && held+one.bytes > m.total/2 {
				continue // its account has its half
			}
			if next < 0 || held < m.accounts[m.waiting[next].account] {
				next = i
			}
		}
		if next < 0 {
			return
		}
		chosen := m.waiting[next]
		if m.held > 0 && m.held+chosen.bytes > m.total {
			return
		}
		m.waiting = slices.Delete(m.waiting, next, next+1)
		m.held += chosen.bytes
		m.accounts[chosen.account] += chosen.bytes
		close(chosen.given)
	}
}
