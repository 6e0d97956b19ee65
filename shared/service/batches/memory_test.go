package batches

import (
	"context"
	"testing"

	"cutroom/shared/testkit/await"
)

// A line that does not fit into memory waits. A line above the limit waits until no other line is in memory.
func TestMemoryIsSharedByAccounts(t *testing.T) {
	const unit = 1 << 20
	m := newMemory(8 * unit)
	given := make(chan string, 16)
	take := func(ctx context.Context, account string, units int64) {
		t.Helper()
		m.mu.Lock()
		before := len(m.waiting) + int(m.held)
		m.mu.Unlock()
		go func() {
			if m.take(ctx, account, units*unit) {
				given <- account
			} else {
				given <- account + " left"
			}
		}()
		for now := before; now == before; { // until take waits or succeeds
			m.mu.Lock()
			now = len(m.waiting) + int(m.held)
			m.mu.Unlock()
		}
	}
	wants := func(want ...string) {
		t.Helper()
		for _, one := range want {
			if got := <-given; got != one {
				t.Fatalf("%q was granted, want %q", got, one)
			}
		}
		select {
		case got := <-given:
			t.Fatalf("%q was granted, too", got)
		default:
		}
	}
	take(t.Context(), "a", 4)
	wants("a")
	take(t.Context(), "a", 1) // exceeds its half
	wants()
	take(t.Context(), "b", 3)
	wants("b")
	ctx, leave := context.WithCancel(t.Context())
	take(ctx, "c", 2)         // does not fit, so it waits
	take(t.Context(), "d", 1) // would fit, but waits behind c
	wants()
	leave()
	wantBoth := map[string]bool{await.Receive(t, "given", given): true, await.Receive(t, "given", given): true}
	if !wantBoth["c left"] || !wantBoth["d"] {
		t.Fatalf("got %v", wantBoth)
	}
	take(t.Context(), "e", 20)
	m.release("a", 4*unit)
	wants("a") // a has waited longer than e
	m.release("b", 3*unit)
	m.release("d", 1*unit)
	wants()
	if !m.take(t.Context(), "f", shortLine) {
		t.Error("a short line waited")
	}
	m.release("f", shortLine)
	m.release("a", unit)
	wants("e")
	m.release("e", 20*unit)
	if m.held != 0 || len(m.accounts) > 0 || len(m.waiting) > 0 {
		t.Errorf("remaining state: %+v", m)
	}
}
