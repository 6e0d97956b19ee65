package ratelimit

import (
	"container/list"
	"context"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// freeFailures is how many failures cost nothing: everybody mistypes.
	freeFailures = 10
	// forgiveEvery is how long it takes to forget one failure.
	forgiveEvery = 30 * time.Second
	// maxFailures caps the count: more failures cost no more.
	maxFailures = freeFailures + 7
	// firstDelay is the delay of the first failure beyond the free ones. Each
	// further one doubles it, up to maxDelay.
	firstDelay, maxDelay = 100 * time.Millisecond, 5 * time.Second
	// maxWaitingPerName bounds how many failures of one name wait at once, and
	// maxWaiting how many of all names. More are refused without a wait.
	maxWaitingPerName, maxWaiting = 8, 512
	// maxNames bounds how many names are remembered: the one whose last failure
	// is oldest is dropped.
	maxNames = 20_000
)

// Failures slows down callers who fail, such as by guessing keys. It counts by
// name, which is mostly the caller's address. The more failures, the longer
// each waits; a caller that never fails never waits. The zero value is not
// usable.
type Failures struct {
	now func() time.Time

	mu    sync.Mutex
	names map[string]*list.Element
	// order holds the names, the one that failed last in front.
	order   *list.List
	waiting int
}

// failing is what is known of one name.
type failing struct {
	name  string
	count int
	// since is when failures were last forgiven.
	since   time.Time
	waiting int
}

// NewFailures returns Failures without any; now is the clock.
func NewFailures(now func() time.Time) *Failures {
	return &Failures{now: now, names: map[string]*list.Element{}, order: list.New()}
}

// Admit returns nil if the name may make an attempt now.
//
// Errors: fault.Limited with RetryAfter while too many of the name's failures
// wait.
func (f *Failures) Admit(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	element, ok := f.names[name]
	if !ok || element.Value.(*failing).waiting < maxWaitingPerName {
		return nil
	}
	return tooManyFailures(f.delay(element.Value.(*failing)))
}

// Failed counts a failure of the name and returns after its delay, or when the
// context ends.
//
// Errors: fault.Limited with RetryAfter, at once, if too many wait already.
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

// count counts a failure, and returns its delay and a function that ends its
// wait.
func (f *Failures) count(name string) (delay time.Duration, done func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.find(name)
	one.count = min(one.count+1, maxFailures)
	delay = f.delay(one)
	switch {
	case delay == 0:
		return 0, nil, nil
	case one.waiting >= maxWaitingPerName || f.waiting >= maxWaiting:
		return 0, nil, tooManyFailures(delay)
	}
	one.waiting++
	f.waiting++
	return delay, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		one.waiting--
		f.waiting--
	}, nil
}

// find returns what is known of the name, and makes it the last that failed.
func (f *Failures) find(name string) *failing {
	now := f.now()
	element, ok := f.names[name]
	if !ok {
		if f.order.Len() >= maxNames {
			oldest := f.order.Back()
			delete(f.names, oldest.Value.(*failing).name)
			f.order.Remove(oldest)
		}
		element = f.order.PushFront(&failing{name: name, since: now})
		f.names[name] = element
	}
	f.order.MoveToFront(element)
	one := element.Value.(*failing)
	// A clock that was set back neither forgives nor costs anything.
	if forgiven := int(max(now.Sub(one.since), 0) / forgiveEvery); forgiven > 0 {
		one.count, one.since = max(one.count-forgiven, 0), now
	}
	return one
}

// delay returns what a failure of the name costs now.
func (f *Failures) delay(one *failing) time.Duration {
	beyond := one.count - freeFailures
	if beyond <= 0 {
		return 0
	}
	return min(firstDelay<<(beyond-1), maxDelay)
}

func tooManyFailures(delay time.Duration) error {
	err := fault.New(fault.Limited, "There were too many failed attempts from this address. Try again later.")
	err.RetryAfter = max(delay, time.Second)
	return err
}
