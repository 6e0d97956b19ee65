package batches

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Accounts take turns, however many calls one of them has waiting; who stops waiting takes
// no turn.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1)
		if !turns.take(t.Context(), "a") {
			t.Fatal("there is a turn")
		}
		var got []string
		next := make(chan bool)
		wait := func(ctx context.Context, account string) {
			go func() {
				if turns.take(ctx, account) {
					got = append(got, account)
					<-next
					turns.release(account)
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
		turns.release("a")
		for range 5 {
			synctest.Wait()
			next <- true
		}
		synctest.Wait()
		if want := []string{"b", "c", "a", "b", "a"}; !slices.Equal(got, want) {
			t.Errorf("turns of %v, want %v", got, want)
		}
		if turns.free != 1 || len(turns.held) > 0 || len(turns.served) > 0 {
			t.Errorf("left over: %+v", turns)
		}
	})
}

// One account leaves a quarter of the turns to those that have none, and who has the most
// gets none while another waits.
func TestTurnsThatAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(16)
		waiting, leave := context.WithCancel(t.Context())
		want := func(calls int, account string) {
			for range calls {
				go turns.take(waiting, account)
			}
			synctest.Wait()
		}
		want(20, "a")
		if turns.held["a"] != 12 || turns.othersWait("a") || !turns.othersWait("b") {
			t.Errorf("one account: %v", turns.held)
		}
		for _, account := range []string{"b", "c", "d", "e", "f"} {
			want(2, account)
		}
		if turns.held["a"] != 12 || turns.held["b"] != 1 || turns.held["e"] != 1 || turns.held["f"] != 0 {
			t.Errorf("five accounts: %v", turns.held)
		}
		turns.release("a")
		if turns.held["a"] != 11 || turns.held["f"] != 1 {
			t.Errorf("one call has ended: %v", turns.held)
		}
		leave()
		synctest.Wait()
	})
}

// A batch makes as many calls at once as are taken: it finds out, and waits when none is.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(4)
		for range 4 {
			if !p.begin(t.Context()) {
				t.Fatal("four may be made")
			}
		}
		p.refused(time.Hour)
		p.refused(time.Hour)
		begun := time.Now()
		went := make(chan bool)
		go func() { went <- p.begin(t.Context()) }()
		synctest.Wait()
		select {
		case <-went:
			t.Error("a third call was made where two are taken")
		default:
		}
		p.took()
		if !<-went || time.Now() != begun {
			t.Error("it goes on when one has ended")
		}
		p.took()
		p.refused(time.Hour) // none is under way now
		if !p.begin(t.Context()) || time.Since(begun) != mostPause {
			t.Errorf("it waited %s", time.Since(begun))
		}
		for range 20 {
			p.took()
			p.begin(t.Context())
		}
		if p.current != 4 {
			t.Errorf("%d calls at once", p.current)
		}
		p.end()
		ended, end := context.WithCancel(t.Context())
		end()
		if p.begin(ended) {
			t.Error("it went on after the end")
		}
	})
}
