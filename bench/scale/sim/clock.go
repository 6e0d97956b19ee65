package sim

import (
	"container/heap"
	"time"
)

// Clock is simulated time. It goes from event to event.
type Clock struct {
	now    time.Time
	events events
	last   int64
	turn   int64
}

// begin is when every simulation begins: midnight.
var begin = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

// NewClock returns a clock that stands at a time of the first day.
func NewClock(at time.Duration) *Clock { return &Clock{now: begin.Add(at)} }

// Now returns the simulated time.
func (c *Clock) Now() time.Time { return c.now }

// Turn implements cloud.Clock: each event is a turn.
func (c *Clock) Turn() int64 { return c.turn }

// Apart says that what follows in this event is of another caller than what was before.
func (c *Clock) Apart() {
	c.last++
	c.turn = c.last
}

// Since returns the simulated time since the first midnight.
func (c *Clock) Since() time.Duration { return c.now.Sub(begin) }

// After calls the function when so much time has passed. Of two at one time, the one that
// was asked for first is called first.
func (c *Clock) After(wait time.Duration, call func()) {
	c.last++
	heap.Push(&c.events, event{c.now.Add(max(wait, 0)), c.last, call})
}

// Run calls events until the time, or until there are none.
func (c *Clock) Run(until time.Time) {
	for len(c.events) > 0 && !c.events[0].at.After(until) {
		next := heap.Pop(&c.events).(event)
		c.now, c.turn = next.at, next.order
		next.call()
	}
	c.now = until
}

// event is a call at a time.
type event struct {
	at    time.Time
	order int64
	call  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if !e[i].at.Equal(e[j].at) {
		return e[i].at.Before(e[j].at)
	}
	return e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*e = old[:len(old)-1]
	return last
}

// machine is the clock of a machine (see dynamo.Machine), which was started at midnight.
type machine struct{ clock *Clock }

func (m machine) Now() time.Duration { return m.clock.Since() }
