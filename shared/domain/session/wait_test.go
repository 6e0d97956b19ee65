package session_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
)

// waiting is a client that waits for the account's only slot.
type waiting struct {
	leave context.CancelFunc
	// ended is closed at the end of the wait, which the two below tell of.
	ended   chan struct{}
	session *session.Session
	err     error

	mu     sync.Mutex
	places []session.Place
}

func (w *world) wait(t *testing.T, line int) *waiting {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	one := &waiting{leave: leave, ended: make(chan struct{})}
	go func() {
		defer close(one.ended)
		one.session, one.err = w.Wait(ctx, "acme", session.Limits{Sessions: 1, Line: line}, func(place session.Place) {
			one.mu.Lock()
			defer one.mu.Unlock()
			one.places = append(one.places, place)
		})
	}()
	synctest.Wait()
	return one
}

// told returns what the client was told of its place, and forgets it.
func (w *waiting) told() []session.Place {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := w.places
	w.places = nil
	return told
}

func (w *waiting) isServed(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case <-w.ended:
		if w.err != nil || !w.session.Alive() {
			t.Errorf("the wait ended with %v", w.err)
		}
	default:
		t.Error("the client still waits")
	}
}

// A slot that is freed by this instance goes to who is next at once, and one that is freed by
// another with the next look.
func TestAFreedSlotIsTakenWithinASecond(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		holder := w.open(t, 1)
		first, second := w.wait(t, 9), w.wait(t, 9)
		holder.Close(t.Context())
		first.isServed(t)
		w.store.mu.Lock()
		clear(w.store.slots)
		w.store.mu.Unlock()
		time.Sleep(session.LookEvery)
		second.isServed(t)
		if w.Count() != 2 {
			t.Errorf("%d sessions are counted", w.Count())
		}
		first.session.Close(t.Context())
		second.session.Close(t.Context())
		// Nobody waits any more, and nobody looks.
		before, _ := w.store.count("look 1")
		after(10 * time.Second)
		if looks, _ := w.store.count("look 1"); looks != before {
			t.Errorf("%d looks at a line in which nobody waits", looks-before)
		}
	})
}

func TestWhoWaitsIsToldThePlace(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		w.open(t, 1)
		first, second := w.wait(t, 9), w.wait(t, 9)
		time.Sleep(session.LookEvery)
		synctest.Wait()
		if told := first.told(); !slices.Equal(told, []session.Place{{Position: 1, Size: 1}, {Position: 1, Size: 2}}) {
			t.Errorf("the first was told %v", told)
		}
		second.told()
		after(4 * session.TellEvery)
		if told := second.told(); len(told) < 4 || told[3] != (session.Place{Position: 2, Size: 2}) {
			t.Errorf("in four seconds the second was told %v", told)
		}
		first.leave()
		<-first.ended
		if !errors.Is(first.err, context.Canceled) {
			t.Errorf("who leaves gets %v", first.err)
		}
		time.Sleep(session.LookEvery)
		synctest.Wait()
		if told := second.told(); len(told) == 0 || told[len(told)-1] != (session.Place{Position: 1, Size: 1}) {
			t.Errorf("when the first has left, the second was told %v", told)
		}
		second.leave()
		<-second.ended
	})
}

func TestAFullLine(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		w.open(t, 1)
		first, second := w.wait(t, 1), w.wait(t, 1)
		<-second.ended
		if !fault.Is(second.err, fault.Limited) {
			t.Errorf("the second client of a line of one: %v", second.err)
		}
		first.leave()
		<-first.ended
		third := w.wait(t, 1)
		third.leave()
		<-third.ended
		if len(w.store.tickets) > 0 {
			t.Errorf("in the line are still %v", w.store.tickets)
		}
	})
}

// Who has waited goes on with a place under the instance's next lease.
func TestALineOutlivesTheLease(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		w.open(t, 1)
		first := w.wait(t, 9)
		w.store.fail(func(string) error { return errDown })
		after(session.FenceAfter + time.Second)
		if told := first.told(); len(told) < 25 {
			t.Errorf("without the store the client was told its place %d times", len(told))
		}
		w.store.fail(nil)
		after(5 * time.Second)
		first.isServed(t) // the slot was one of the first lease
	})
}

// A call that fails may have taken the slot all the same: the next look finds out.
func TestARedemptionWhoseAnswerIsLost(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		holder := w.open(t, 1)
		first := w.wait(t, 9)
		w.store.fail(func(call string) error {
			if call != "redeem" {
				return nil
			}
			w.store.slots[w.store.tickets[0].ID] = true
			w.store.tickets = nil
			w.store.failing = nil
			return errDown
		})
		holder.Close(t.Context())
		after(session.LookEvery)
		first.isServed(t)
		first.session.Close(t.Context())
		if _, slots := w.store.count(""); slots != 0 {
			t.Errorf("%d slots are left", slots)
		}

		// Who has left by then gets no session, and the slot is freed.
		holder = w.open(t, 1)
		second := w.wait(t, 9)
		w.store.fail(func(call string) error {
			if call == "redeem" || call == "leave" {
				return errDown
			}
			return nil
		})
		holder.Close(t.Context())
		synctest.Wait()
		second.leave()
		<-second.ended
		w.store.fail(nil)
		w.store.mu.Lock()
		w.store.slots[w.store.tickets[0].ID] = true // it arrives after all
		w.store.tickets = nil
		w.store.mu.Unlock()
		after(2 * time.Minute)
		if _, slots := w.store.count(""); slots != 0 {
			t.Errorf("%d slots are left", slots)
		}
	})
}

// A ticket that could not be given back blocks nobody.
func TestATicketWithoutAClient(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		holder := w.open(t, 1)
		first, second := w.wait(t, 9), w.wait(t, 9)
		w.store.fail(func(call string) error {
			if call == "leave" {
				return errDown
			}
			return nil
		})
		first.leave()
		<-first.ended
		w.store.fail(nil)
		holder.Close(t.Context())
		after(2 * session.LookEvery)
		second.isServed(t)
	})
}
