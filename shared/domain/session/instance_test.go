package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
)

// records is one instance's store. It records the calls and fails on demand.
type records struct {
	mu      sync.Mutex
	calls   []string
	live    string
	slots   map[string]bool
	queue   session.Queue
	failing func(call string) error
}

func (r *records) call(name, what string, do func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, name+" "+what)
	if r.failing != nil {
		if err := r.failing(name); err != nil {
			return err
		}
	}
	return do()
}

func (r *records) Begin(_ context.Context, epoch, _ string) error {
	return r.call("begin", epoch, func() error {
		if r.live != epoch { // the slots of the previous epoch no longer count
			clear(r.slots)
		}
		r.live = epoch
		return nil
	})
}

func (r *records) Renew(_ context.Context, epoch string) error {
	return r.call("renew", epoch, func() error { return r.dead(epoch) })
}

func (r *records) End(_ context.Context, epoch string) error {
	return r.call("end", epoch, func() error { clear(r.slots); return nil })
}

func (r *records) Take(_ context.Context, slot session.Slot, limit int) error {
	return r.call("take", slot.Epoch, func() error {
		if !session.Admits(r.queue.Tickets(storeTime()), slot.ID, limit-len(r.slots)) {
			return session.ErrNoSlot
		}
		r.queue.Remove(slot.ID)
		r.slots[slot.ID] = true
		return r.dead(slot.Epoch)
	})
}

func storeTime() time.Duration { return time.Duration(time.Now().UnixNano()) }

func (r *records) Free(_ context.Context, slot session.Slot) error {
	return r.call("free", slot.Epoch, func() error { delete(r.slots, slot.ID); return nil })
}

func (r *records) Active(context.Context, string) (int, error) { return len(r.slots), nil }

func (r *records) RenewTickets(
	_ context.Context, _, holder string, own []session.Ticket,
) (tickets []session.Ticket, taken int, err error) {
	err = r.call("queue", "", func() error {
		if r.queue.Renew(holder, own, storeTime()) {
			r.calls = append(r.calls, "renew tickets")
		}
		tickets, taken = r.queue.Tickets(storeTime()), len(r.slots)
		return nil
	})
	return tickets, taken, err
}

func (r *records) Address(context.Context, string) (string, error) { return "", nil }

func (r *records) dead(epoch string) error {
	if epoch != r.live {
		return fault.New(fault.Conflict, "dead")
	}
	return nil
}

func (r *records) count(call string) (calls, slots int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, made := range r.calls {
		if made == call {
			calls++
		}
	}
	return calls, len(r.slots)
}

func (r *records) fail(how func(call string) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = how
}

var errDown = errors.New("the store is down")

type world struct {
	*session.Instance
	store  *records
	asleep atomic.Int64 // how long the process was suspended, in nanoseconds
	end    context.CancelFunc
}

// live runs a test with an instance that already has its first lease.
func live(t *testing.T, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{store: &records{slots: map[string]bool{}, queue: session.Queue{}}}
		start, drawn := time.Now(), 0
		w.Instance = session.NewInstance(session.Config{
			Store:  w.store,
			Uptime: func() time.Duration { return time.Since(start) + time.Duration(w.asleep.Load()) },
			NewID:  func() string { drawn++; return fmt.Sprint(drawn) },
			Logger: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(t.Context())
		w.end = cancel
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		synctest.Wait()
		test(t, w)
		cancel()
		running.Wait()
	})
}

func (w *world) open(t *testing.T, limit int) *session.Session {
	t.Helper()
	s, err := w.Open(t.Context(), "acme", limit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func after(d time.Duration) {
	time.Sleep(d + 600*time.Millisecond)
	synctest.Wait()
}

func isLost(s *session.Session) bool {
	select {
	case <-s.Lost():
		return true
	default:
		return false
	}
}

func TestTriedReportsTheFirstAttempt(t *testing.T) {
	for name, failure := range map[string]error{"it has a lease": nil, "the store is down": errDown} {
		t.Run(name, func(t *testing.T) {
			slow := func(call string) error {
				if call == "begin" {
					time.Sleep(time.Second)
				}
				return failure
			}
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				i := session.NewInstance(session.Config{
					Store: &records{slots: map[string]bool{}, failing: slow}, NewID: func() string { return "1" },
					Uptime: func() time.Duration { return time.Since(start) }, Logger: slog.New(slog.DiscardHandler),
				})
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { i.Run(ctx) })
				select {
				case <-i.Tried():
				case <-time.After(time.Minute):
				}
				if took := time.Since(start); took != time.Second || i.Ready() != (failure == nil) {
					t.Errorf("ready after %s: %v", took, i.Ready())
				}
				cancel()
				running.Wait()
			})
		})
	}
}

func TestOneWriteRenewsAllSessions(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		for range 50 {
			w.open(t, 100)
		}
		after(10 * session.RenewEvery)
		w.store.mu.Lock()
		made := len(w.store.calls) - 50
		w.store.mu.Unlock()
		if renewals, _ := w.store.count("renew 1"); renewals != 10 || made != 11 {
			t.Errorf("%d renewals among %d calls other than takes, want 10 of 11", renewals, made)
		}
		if w.Count() != 50 {
			t.Errorf("%d sessions are open", w.Count())
		}
	})
}

func TestCloseFreesSlotOnce(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		first := w.open(t, 1)
		if _, err := w.Open(t.Context(), "acme", 1); !fault.Is(err, fault.Limited) {
			t.Errorf("cannot open a second session: %v", err)
		}
		first.Close(t.Context())
		first.Close(t.Context())
		if freed, slots := w.store.count("free 1"); freed != 1 || slots != 0 || w.Count() != 0 {
			t.Errorf("%d frees, %d slots, %d sessions", freed, slots, w.Count())
		}
		w.open(t, 1).Close(t.Context())
	})
}

// If the store fails, the instance stops serving 30 s after its last renewal started. The check before each frame
// detects this immediately.
func TestFailingStoreEndsSessionsInTime(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		s := w.open(t, 1)
		after(session.RenewEvery) // one renewal
		w.store.fail(func(string) error { return errDown })
		time.Sleep(session.FenceAfter - 700*time.Millisecond)
		if !s.Alive() || isLost(s) {
			t.Fatal("the sessions ended too early")
		}
		time.Sleep(100 * time.Millisecond)
		if s.Alive() || !isLost(s) {
			t.Error("the sessions did not end in time")
		}
		if _, err := w.Open(t.Context(), "acme", 1); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a session without a lease: %v", err)
		}
		w.store.fail(nil)
		after(5 * time.Second)
		if next := w.open(t, 5); !next.Alive() || s.Alive() {
			t.Error("the next lease is not alive, or the first one is again")
		}
		s.Close(t.Context())
	})
}

func TestShortFailureDoesNotEndSessions(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		s := w.open(t, 1)
		w.store.fail(func(string) error { return errDown })
		after(session.RenewEvery + 10*time.Second)
		w.store.fail(nil)
		after(2 * session.FenceAfter)
		if !s.Alive() || isLost(s) {
			t.Error("the session was lost")
		}
	})
}

func TestSuspendedProcessServesNoSession(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		s := w.open(t, 1)
		w.asleep.Store(int64(session.FenceAfter))
		if s.Alive() || !isLost(s) {
			t.Error("the session is served after a suspension")
		}
		if _, err := w.Open(t.Context(), "acme", 1); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a session under the old lease: %v", err)
		}
		after(time.Second)
		if renewals, _ := w.store.count("renew 1"); renewals != 0 {
			t.Error("the lost lease was renewed")
		}
		if next := w.open(t, 5); !next.Alive() {
			t.Error("no next lease")
		}
	})
}

func TestTakenOverLeaseIsLost(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		s := w.open(t, 1)
		w.store.mu.Lock()
		w.store.live = "another"
		w.store.mu.Unlock()
		if _, err := w.Open(t.Context(), "acme", 5); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a session under a dead epoch: %v", err)
		}
		if !isLost(s) {
			t.Error("the other sessions are not lost")
		}
		after(time.Second)
		w.open(t, 5)
	})
}

// If a Take is abandoned, its slot is freed repeatedly for as long as the Take may still arrive.
func TestFailedFreeIsRetried(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		s := w.open(t, 5)
		w.store.fail(func(call string) error {
			if call == "free" {
				return errDown
			}
			return nil
		})
		s.Close(t.Context())
		if _, slots := w.store.count(""); slots != 1 {
			t.Fatalf("%d slots", slots)
		}
		w.store.fail(nil)
		after(2 * time.Second)
		if _, slots := w.store.count(""); slots != 0 {
			t.Errorf("%d slots remain", slots)
		}

		w.store.fail(func(call string) error {
			if call == "take" {
				return errDown
			}
			return nil
		})
		if _, err := w.Open(t.Context(), "acme", 5); !errors.Is(err, errDown) {
			t.Fatalf("the take returned %v", err)
		}
		w.store.fail(nil)
		after(10 * time.Second)
		w.store.mu.Lock()
		w.store.slots["session_3"] = true // the abandoned Take arrives
		w.store.mu.Unlock()
		after(time.Minute)
		if _, slots := w.store.count(""); slots != 0 {
			t.Errorf("%d slots remain", slots)
		}
	})
}

func TestEndOfLeaseFreesSlots(t *testing.T) {
	live(t, func(t *testing.T, w *world) {
		s := w.open(t, 5)
		w.end()
		synctest.Wait()
		if ended, slots := w.store.count("end 1"); ended != 1 || slots != 0 || !isLost(s) {
			t.Errorf("%d ends, %d slots, lost %t", ended, slots, isLost(s))
		}
	})
}
