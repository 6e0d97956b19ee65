package main_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/session"
	"cutroom/shared/testkit/patience"
)

// span is a time from and to, as one client saw it.
type span struct{ from, to time.Time }

// seen is what the clients of a test saw.
type seen struct {
	mu sync.Mutex
	// open is when sessions were surely open: from when they said so until their
	// clients began to leave. held is when slots were perhaps taken: from the
	// beginning of the connect to the end of the close.
	open, held []span
	// refused is from the beginning of a connect to its refusal.
	refused []span
	wrong   []error
}

// proves reports whether there were so many sessions, as many at once as the limit allows,
// and a refusal.
func (s *seen) proves(sessions, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) >= sessions && len(s.refused) > 0 && most(s.open, span{time.Time{}, time.Now()}) >= limit
}

// visit opens a session, stays and leaves.
func (s *seen) visit(ctx context.Context, i *instance, stay time.Duration) {
	from := time.Now()
	c, err := connect(ctx, i)
	opened := time.Now()
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if errors.Is(err, errFull) {
			s.refused = append(s.refused, span{from, opened})
		} else {
			s.wrong = append(s.wrong, err)
		}
		return
	}
	time.Sleep(stay)
	left := time.Now()
	if rand.IntN(4) == 0 {
		c.CloseNow() // without a word
	} else {
		c.leave()
	}
	<-c.gone
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, span{opened, left})
	s.held = append(s.held, span{from, time.Now()})
}

// most is how many spans overlap at most within a span.
func most(spans []span, within span) int {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, s := range spans {
		if s.from.Before(within.to) && s.to.After(within.from) {
			changes = append(changes, change{s.from, 1}, change{s.to, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		if order := a.at.Compare(b.at); order != 0 {
			return order
		}
		return a.by - b.by
	})
	count, highest := 0, 0
	for _, c := range changes {
		count += c.by
		highest = max(highest, count)
	}
	return highest
}

// Hundreds of clients come and go on several instances: never more sessions than
// the limit, none refused while a slot is free, and the quota right whenever it
// is quiet.
func TestTheLimitHoldsAcrossInstances(t *testing.T) {
	t.Parallel()
	const limit, clients, rounds, roundTime = 7, 200, 3, 4 * time.Second
	f := newFleet(t, limit)
	instances := []*instance{f.start(), f.start(), f.start()}
	any := func() *instance { return instances[rand.IntN(len(instances))] }
	var s seen
	for round := range rounds {
		// Rounds differ in how many clients there are, so that now and then
		// slots are free. A busy machine takes longer for what is to be seen.
		var over atomic.Bool
		var crowd sync.WaitGroup
		for range clients / (1 + round%3*8) {
			crowd.Go(func() {
				for {
					time.Sleep(rand.N(2 * time.Second))
					if over.Load() {
						return
					}
					s.visit(t.Context(), any(), rand.N(time.Second))
				}
			})
		}
		time.Sleep(roundTime)
		patience.Until(t, "sessions and refusals", func() bool { return s.proves((1+round)*20, limit) })
		over.Store(true)
		crowd.Wait()
		f.becomes(0)
		// A quiet moment with some sessions, and one with all.
		var stay []*client
		for _, n := range []int{1 + rand.IntN(limit-1), limit} {
			for len(stay) < n {
				stay = append(stay, f.open(any()))
			}
			f.becomes(n)
		}
		for _, i := range instances {
			f.isFull(i)
		}
		for _, c := range stay {
			c.leave()
		}
		f.becomes(0)
	}
	for _, err := range s.wrong {
		t.Errorf("a connect failed: %v", err)
	}
	if highest := most(s.open, span{time.Time{}, time.Now()}); highest != limit {
		t.Errorf("%d sessions were open at once, want %d at most, and to see as many", highest, limit)
	}
	var longest time.Duration
	for _, no := range s.refused {
		for longest <= patience.Max && most(s.held, span{no.from.Add(-longest), no.to}) < limit {
			longest += 20 * time.Millisecond
		}
	}
	// The instance learns later than the client that a session has ended: on a busy
	// machine, many seconds later.
	if longest > patience.Max {
		t.Errorf("a session was refused when a slot had been free for %s", longest)
	}
	t.Logf("%d sessions, %d refusals, a slot free for %s at most before one", len(s.open), len(s.refused), longest)
}

// The sessions of a crashed instance are counted for up to 45 seconds
// (docs/contract/limits.md#realtime-limits), and then no longer.
func TestACrashedInstance(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4)
	crashed, other := f.start(), f.start()
	for range 3 {
		f.open(crashed)
	}
	stays := f.open(other)
	f.becomes(4)
	f.isFull(other)
	crashed.kill()
	end := time.Now().Add(45 * time.Second)
	if f.active() != 4 {
		t.Error("the sessions are not counted until their lease is old")
	}
	for {
		late := time.Now().After(end)
		active := f.active()
		if active == 1 {
			break
		}
		if late {
			t.Fatalf("after 45 s there are %d sessions", active)
		}
		time.Sleep(50 * time.Millisecond)
	}
	for range 3 {
		f.open(other)
	}
	f.isFull(other)
	f.becomes(4)
	stays.edit(t)
}

// An instance that is stopped for a minute finds its slots taken when it goes on:
// it serves no frame of what it had, closes those sessions, and takes nothing
// from those who came after.
func TestAStoppedInstance(t *testing.T) {
	t.Parallel()
	const limit = 3
	f := newFleet(t, limit)
	stopped, other := f.start(), f.start()
	var before []*client
	for range limit {
		c := f.open(stopped)
		c.edit(t)
		before = append(before, c)
	}
	stopped.signal(t, syscall.SIGSTOP)
	goesOn := time.Now().Add(time.Minute)
	for _, c := range before {
		// What waits for the instance when it goes on.
		if err := c.show(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f.becomes(0)
	var after []*client
	for range limit {
		after = append(after, f.open(other))
	}
	f.becomes(limit)
	time.Sleep(max(session.FenceAfter, time.Until(goesOn)))
	stopped.signal(t, syscall.SIGCONT)
	for _, c := range before {
		ctx, cancel := context.WithTimeout(t.Context(), patience.Max)
		err := c.await(ctx)
		cancel()
		if websocket.CloseStatus(err) != websocket.StatusInternalError {
			t.Errorf("a session of the stopped instance: %v, want it closed and no frame", err)
		}
	}
	for _, c := range after {
		c.edit(t)
	}
	if n := f.active(); n != limit {
		t.Errorf("%d sessions are counted", n)
	}
	f.isFull(other)
	// It comes back under a new lease, and is held to the limit.
	eventually(t, "it knows that it is full", func() bool {
		c, err := connect(t.Context(), stopped)
		if c != nil {
			t.Fatal("it opened a session over the limit")
		}
		return errors.Is(err, errFull)
	})
	after[0].leave()
	f.becomes(limit - 1)
	f.open(stopped).edit(t)
	f.becomes(limit)
}

// partingTime is how long an instance that stops has to tell its sessions.
const partingTime = time.Second

// isToldOfTheEnd wants the session's client to be told that its instance stops, unless that
// stood still for as long as it has.
func (c *client) isToldOfTheEnd(t *testing.T, stopped time.Time) {
	t.Helper()
	err := c.await(patience.Context(t))
	if websocket.CloseStatus(err) != websocket.StatusGoingAway && time.Since(stopped) < partingTime {
		t.Errorf("the end was %v", err)
	}
}

// A stop tells every session and frees its slot at once.
func TestTheEndOfAnInstance(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4)
	ending, other := f.start(), f.start()
	first, second, stays := f.open(ending), f.open(ending), f.open(other)
	f.becomes(3)
	stopped := time.Now()
	ending.signal(t, syscall.SIGTERM)
	for _, c := range []*client{first, second} {
		c.isToldOfTheEnd(t, stopped)
	}
	if err := patience.Receive(t, "ending.ended", ending.ended); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	if n := f.active(); n != 1 {
		t.Errorf("%d sessions are counted", n)
	}
	stays.edit(t)
}
