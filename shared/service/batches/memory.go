package batches

import (
	"context"
	"slices"
	"sync"
)

const (
	// callMemory limits the memory for the long lines of running calls. checkMemory limits the memory for the long
	// lines in validation. Both are in bytes. A single line is always permitted. An account may use half of the
	// memory, or one line.
	callMemory, checkMemory = 64 << 20, 32 << 20
	// shortLine is the length of the longest line whose memory is not counted. It is also the read size for an input.
	shortLine = 64 << 10
)

// memory limits the memory for the long lines of all batches. A line waits if too little memory is free. The next
// line admitted is from the account that uses the least memory. If several accounts use equally little, the line that
// is first in the queue is next.
type memory struct {
	total int64

	mu       sync.Mutex
	held     int64
	accounts map[string]int64
	waiting  []*claim
}

type claim struct {
	account string
	bytes   int64
	given   chan struct{}
}

func newMemory(total int64) *memory { return &memory{total: total, accounts: map[string]int64{}} }

// take waits for memory for a line. It returns false if the context ends first. Otherwise, call release later.
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
		m.handOut() // this line may have blocked others
		return false
	}
	m.end(account, bytes) // the memory was granted at the same moment
	return false
}

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

// handOut admits lines in turn until a line does not fit. It then stops, because smaller lines
// could keep that line waiting forever. The caller must hold the lock.
func (m *memory) handOut() {
	for {
		next := -1
		for i, one := range m.waiting {
			held := m.accounts[one.account]
			if held > 0 && held+one.bytes > m.total/2 {
				continue // the account already uses its half
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
