package sim

import (
	"container/heap"
	"time"
)

// clock is simulated time. It advances from event to event and implements fakeaws.Clock.
type clock struct {
	now    time.Time
	events events
	last   int64
	turn   int64
}

var begin = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

func (c *clock) Now() time.Time { return c.now }

// Turn returns the number of the current event. All calls during one event come from one client.
func (c *clock) Turn() int64 { return c.turn }

// nextCaller marks this event's following calls as made by another client.
func (c *clock) nextCaller() {
	c.last++
	c.turn = c.last
}

func (c *clock) sinceMidnight() time.Duration { return c.now.Sub(begin) }

// After schedules a function call. Calls scheduled for the same time run in the order of scheduling.
func (c *clock) After(wait time.Duration, call func()) {
	c.last++
	heap.Push(&c.events, event{c.now.Add(max(wait, 0)), c.last, call})
}

func (c *clock) run(until time.Time) {
	for len(c.events) > 0 && !c.events[0].at.After(until) {
		next := heap.Pop(&c.events).(event)
		c.now, c.turn = next.at, next.order
		next.call()
	}
	c.now = until
}

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
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = event{}
	*e = (*e)[:len(*e)-1]
	return last
}

// machine is the clock of a machine that started at midnight (see dynamo.Machine).
type machine struct{ *clock }

func (m machine) Now() time.Duration { return m.sinceMidnight() }
