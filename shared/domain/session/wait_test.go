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

type waiting struct {
	leave   context.CancelFunc
	ended   chan struct{} // closed when the wait ends
	session *session.Session
	err     error

	mu     sync.Mutex
	places []session.Place
}

func (w *world) wait(t *testing.T, longest int) *waiting {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	one := &waiting{leave: leave, ended: make(chan struct{})}
	go func() {
		defer close(one.ended)
		one.session, one.err = w.Wait(ctx, "acme", session.Limits{Sessions: 1, Queue: longest}, func(place session.Place) {
			one.mu.Lock()
			defer one.mu.Unlock()
			one.places = append(one.places, place)
		})
	}()
	synctest.Wait()
	return one
}

// received returns the places received since the last call.
func (w *waiting) received() []session.Place {
	w.mu.Lock()
	defer w.mu.Unlock()
	places := w.places
	w.places = nil
	return places
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

// An instance immediately uses a slot that it has freed. It gets a slot freed by another instance at its next poll.
func TestFreedSlotIsTakenWithinASecond(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		holder := w.open(t, 1)
		first, second := w.wait(t, 9), w.wait(t, 9)
		holder.Close(t.Context())
		first.isServed(t)
		w.store.mu.Lock()
		clear(w.store.slots)
		w.store.mu.Unlock()
		time.Sleep(session.PollEvery)
		second.isServed(t)
		if w.Count() != 2 {
			t.Errorf("%d sessions are counted", w.Count())
		}
		first.session.Close(t.Context())
		second.session.Close(t.Context())
		// No clients are waiting, so the instance stops reading the queue.
		after(time.Second)
		before, _ := w.store.count("queue ")
		after(10 * time.Second)
		if reads, _ := w.store.count("queue "); reads != before {
			t.Errorf("%d reads of an empty queue", reads-before)
		}
	})
}

func TestWaitingClientReceivesItsPlace(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		w.open(t, 1)
		first, second := w.wait(t, 9), w.wait(t, 9)
		time.Sleep(session.PollEvery)
		synctest.Wait()
		if places := first.received(); !slices.Equal(places, []session.Place{{Position: 1, Size: 1}, {Position: 1, Size: 2}}) {
			t.Errorf("the first received %v", places)
		}
		second.received()
		after(4 * session.NotifyEvery)
		if places := second.received(); len(places) < 4 || places[3] != (session.Place{Position: 2, Size: 2}) {
			t.Errorf("in four seconds the second received %v", places)
		}
		first.leave()
		<-first.ended
		if !errors.Is(first.err, context.Canceled) {
			t.Errorf("the wait of a departed client ended with %v", first.err)
		}
		time.Sleep(session.PollEvery)
		synctest.Wait()
		if places := second.received(); len(places) == 0 || places[len(places)-1] != (session.Place{Position: 1, Size: 1}) {
			t.Errorf("after the first client left, the second received %v", places)
		}
		second.leave()
		<-second.ended
	})
}

func TestOneWriteRenewsAllTickets(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		w.open(t, 1)
		for range 50 {
			w.wait(t, 99)
		}
		before, _ := w.store.count("renew tickets")
		after(20 * time.Second)
		renewals, _ := w.store.count("renew tickets")
		if renewals -= before; renewals < 6 || renewals > 11 {
			t.Errorf("%d writes in 20 seconds", renewals)
		}
		w.store.mu.Lock()
		if waiting := len(w.store.queue.Tickets(storeTime())); waiting != 50 {
			t.Errorf("%d tickets are valid", waiting)
		}
		w.store.mu.Unlock()
	})
}

func TestFullQueueRejectsClient(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		w.open(t, 1)
		first, second := w.wait(t, 1), w.wait(t, 1)
		<-second.ended
		if !fault.Is(second.err, fault.Limited) {
			t.Errorf("second client in a queue of one: %v", second.err)
		}
		first.leave()
		<-first.ended
		third := w.wait(t, 1)
		third.leave()
		<-third.ended
		if len(w.store.queue) > 0 {
			t.Errorf("the queue still has %v", w.store.queue)
		}
	})
}

func TestWaitContinuesWithNextLease(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		w.open(t, 1)
		first := w.wait(t, 9)
		w.store.fail(func(string) error { return errDown })
		after(session.FenceAfter + time.Second)
		if places := first.received(); len(places) < 25 {
			t.Errorf("without the store the client received its place %d times", len(places))
		}
		w.store.fail(nil)
		after(5 * time.Second)
		first.isServed(t) // the slot was taken under the first lease
	})
}

func TestWaitFailsIfStoreFailsAtStart(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		w.store.fail(func(string) error { return errDown })
		first := w.wait(t, 9)
		<-first.ended
		if !errors.Is(first.err, errDown) {
			t.Errorf("the wait ended with %v", first.err)
		}
	})
}

// A Take that fails may still have taken the slot. The next call then serves the client.
func TestSlotOfLostResponseIsFreed(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		holder := w.open(t, 1)
		first := w.wait(t, 9)
		takes := func(call string) error {
			if call != "take" {
				return nil
			}
			id := w.store.queue.Tickets(storeTime())[0].ID
			w.store.queue.Remove(id)
			w.store.slots[id] = true
			w.store.failing = nil
			return errDown
		}
		w.store.fail(takes)
		holder.Close(t.Context())
		after(2 * time.Second)
		first.isServed(t)

		// A client that leaves during the call gets no session.
		second := w.wait(t, 9)
		w.store.fail(takes)
		first.session.Close(t.Context())
		synctest.Wait()
		second.leave()
		<-second.ended
		after(2 * time.Second)
		if _, slots := w.store.count(""); slots != 0 {
			t.Errorf("%d slots remain", slots)
		}
	})
}

func TestSlotOfDepartedClientIsFreed(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		holder := w.open(t, 1)
		first := w.wait(t, 9)
		w.store.fail(func(call string) error {
			if call == "take" {
				first.leave()
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		holder.Close(t.Context())
		<-first.ended
		synctest.Wait()
		if _, slots := w.store.count(""); slots != 0 || w.Count() != 0 {
			t.Errorf("%d slots are left, and %d sessions", slots, w.Count())
		}
	})
}

func TestTicketWithoutClientIsRemoved(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		holder := w.open(t, 1)
		first, second := w.wait(t, 9), w.wait(t, 9)
		w.store.fail(func(call string) error {
			if call == "queue" {
				return errDown
			}
			return nil
		})
		first.leave()
		<-first.ended
		w.store.fail(nil)
		holder.Close(t.Context())
		after(2 * session.PollEvery)
		second.isServed(t)
	})
}
