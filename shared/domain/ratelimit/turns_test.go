package ratelimit

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A call that gives up waiting does not use a turn.
func TestAccountsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1, 0)
		if !turns.Take(t.Context(), "a") {
			t.Fatal("a turn is free")
		}
		var got []string
		next := make(chan bool)
		wait := func(ctx context.Context, account string) {
			go func() {
				if turns.Take(ctx, account) {
					got = append(got, account)
					<-next
					turns.Release(account)
				}
			}()
			synctest.Wait()
		}
		leaving, leave := context.WithCancel(t.Context())
		wait(leaving, "a")
		for _, account := range []string{"a", "a", "b", "b", "c"} {
			wait(t.Context(), account)
		}
		leave()
		synctest.Wait()
		turns.Release("a")
		for range 5 {
			synctest.Wait()
			next <- true
		}
		synctest.Wait()
		if want := []string{"b", "c", "a", "b", "a"}; !slices.Equal(got, want) {
			t.Errorf("turns of %v, want %v", got, want)
		}
		if turns.free != 1 || len(turns.held) > 0 || len(turns.served) > 0 {
			t.Errorf("remaining state: %+v", turns)
		}
	})
}

// While no other account takes turns, an account may take the reserved ones too.
func TestReservedTurnsAreLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2, 1).Lent()
		waiting, leave := context.WithCancel(t.Context())
		want := func(account string, calls, held int) {
			t.Helper()
			for range calls {
				go turns.Take(waiting, account)
			}
			if synctest.Wait(); turns.held[account] != held {
				t.Errorf("%s has %d turns, want %d", account, turns.held[account], held)
			}
		}
		want("a", 5, 2)
		want("b", 1, 0)
		turns.Release("a")
		want("b", 0, 1)
		turns.Release("b")
		want("a", 0, 1) // the other turn is reserved for b now
		want("b", 1, 1)
		turns.Release("b")
		time.Sleep(sharedFor)
		turns.Release("a")
		want("a", 0, 2)
		leave()
		synctest.Wait()
	})
}

// While another account waits, the account with the most turns gets no more.
func TestTurnsAreKeptForOtherAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(16, 4)
		waiting, leave := context.WithCancel(t.Context())
		want := func(calls int, account string) {
			for range calls {
				go turns.Take(waiting, account)
			}
			synctest.Wait()
		}
		want(20, "a")
		if turns.held["a"] != 12 || turns.OthersWait("a") || !turns.OthersWait("b") {
			t.Errorf("one account: %v", turns.held)
		}
		for _, account := range []string{"b", "c", "d", "e", "f"} {
			want(2, account)
		}
		if turns.held["a"] != 12 || turns.held["b"] != 1 || turns.held["e"] != 1 || turns.held["f"] != 0 {
			t.Errorf("five accounts: %v", turns.held)
		}
		turns.Release("a")
		if turns.held["a"] != 11 || turns.held["f"] != 1 {
			t.Errorf("one call has ended: %v", turns.held)
		}
		leave()
		synctest.Wait()
	})
}

// Otherwise a client could disconnect instead of waiting.
func TestDisconnectedClientWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const read = 4 * time.Second // as long as an image may take to decode
		turns := NewTurns(1, 0).AtMost(1)
		began := time.Now()
		for range 3 {
			ctx, disconnect := context.WithCancel(t.Context())
			_ = turns.Slowly(ctx, "studio", 4, func() error {
				time.Sleep(read)
				disconnect()
				return ctx.Err()
			})
			rested := time.Now()
			if !turns.Take(t.Context(), "other") || time.Since(rested) > 0 {
				t.Error("another account waits while the first one pauses")
			}
			turns.Release("other")
		}
		if took := time.Since(began); took != 2*4*read+read {
			t.Errorf("three reads took %v, want three pauses as well", took)
		}
	})
}

// Two accounts whose reads take seconds must leave most of the time to a third one. Alone, an account needs no pauses.
func TestLongReadsLeaveTimeToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2, 1).AtMost(1).Long(time.Second)
		// repeat returns how many reads of an account end within two minutes.
		repeat := func(account string, length time.Duration) (count int) {
			for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); count++ {
				_ = turns.Slowly(t.Context(), account, 4, func() error {
					time.Sleep(length)
					return nil
				})
			}
			return count
		}
		if count := repeat("alone", 6*time.Second); count != 20 {
			t.Errorf("alone, an account reads %d times, want 20", count)
		}
		time.Sleep(sharedFor)
		var slow sync.WaitGroup
		for _, account := range []string{"a", "b"} {
			slow.Go(func() { repeat(account, 6*time.Second) })
		}
		if count := repeat("short", 100*time.Millisecond); count < 600 {
			t.Errorf("beside slow ones, an account reads %d times, alone 1200", count)
		}
		slow.Wait()
	})
}
