package ratelimit

import (
	"container/list"
	"context"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// freeFailures is how many failures in a row cost nothing: everybody mistypes.
	freeFailures = 10
	// forgiveEvery is how long it takes until one failure is forgotten.
	forgiveEvery = 30 * time.Second
	// mostFailures is how far failures are counted: more cost no more.
	mostFailures = freeFailures + 7
	// firstDelay is what the first failure beyond the free ones costs, and longestDelay
	// what one costs at most; each costs twice the last.
	firstDelay, longestDelay = 100 * time.Millisecond, 5 * time.Second
	// heldByName is how many failures of one name may wait at once, and heldInAll how
	// many of all names. More are refused without a wait.
	heldByName, heldInAll = 8, 512
	// failuresKept bounds the names that are remembered: the longest silent goes.
	failuresKept = 20_000
)

// Failures slows those who fail, such as by guessing keys: by name, which is mostly
// where they call from. A failure waits the longer the more there were before it;
// who does not fail never waits. Its zero value is not usable.
type Failures struct {
	now func() time.Time

	mu    sync.Mutex
	names map[string]*list.Element
	// order has the names, the one that failed last in front.
	order *list.List
	held  int
}

// failing is one name.
type failing struct {
	name  string
	count int
	// since is when the count was last reduced.
	since time.Time
	held  int
}

// NewFailures makes an empty memory with a clock.
func NewFailures(now func() time.Time) *Failures {
	return &Failures{now: now, names: map[string]*list.Element{}, order: list.New()}
}

// Admit tells whether an attempt of the name may be made now.
//
// Errors: fault.Limited with RetryAfter while as many of the name's failures wait as
// may at once.
func (f *Failures) Admit(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	element, ok := f.names[name]
	if !ok || element.Value.(*failing).held < heldByName {
		return nil
	}
	return tooManyFailures(f.delay(element.Value.(*failing)))
}

// Failed counts a failure of the name and returns after the time that it costs, or
// when the context ends.
//
// Errors: fault.Limited with RetryAfter, at once, where too many wait already.
func (f *Failures) Failed(ctx context.Context, name string) error {
	delay, done, err := f.count(name)
	if delay == 0 || err != nil {
		return err
	}
	defer done()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// count counts a failure, and returns what it costs and what ends the wait.
func (f *Failures) count(name string) (delay time.Duration, done func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.find(name)
	one.count = min(one.count+1, mostFailures)
	delay = f.delay(one)
	switch {
	case delay == 0:
		return 0, nil, nil
	case one.held >= heldByName || f.held >= heldInAll:
		return 0, nil, tooManyFailures(delay)
	}
	one.held++
	f.held++
	return delay, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		one.held--
		f.held--
	}, nil
}

// find returns what is known of the name, and remembers it as the last that failed.
func (f *Failures) find(name string) *failing {
	now := f.now()
	element, ok := f.names[name]
	if !ok {
		if f.order.Len() >= failuresKept {
			oldest := f.order.Back()
			delete(f.names, oldest.Value.(*failing).name)
			f.order.Remove(oldest)
		}
		element = f.order.PushFront(&failing{name: name, since: now})
		f.names[name] = element
	}
	f.order.MoveToFront(element)
	one := element.Value.(*failing)
	// A clock that was set back forgives nothing, and costs nothing.
	if forgiven := int(max(now.Sub(one.since), 0) / forgiveEvery); forgiven > 0 {
		one.count, one.since = max(one.count-forgiven, 0), now
	}
	return one
}

// delay is what a failure of the name costs now.
func (f *Failures) delay(one *failing) time.Duration {
	beyond := one.count - freeFailures
	if beyond <= 0 {
		return 0
	}
	return min(firstDelay<<(beyond-1), longestDelay)
}

func tooManyFailures(delay time.Duration) error {
	err := fault.New(fault.Limited, "There were too many failed attempts from this address. Try again later.")
	err.RetryAfter = max(delay, time.Second)
	return err
}
