package ratelimit

import (
	"container/list"
	"context"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// freeFailures is how many failures cause no delay, because people make typos.
	freeFailures = 10
	// forgiveEvery is how long it takes until one more failure is forgotten.
	forgiveEvery = 30 * time.Second
	// maxFailures caps the failure count, and thus the delay.
	maxFailures = freeFailures + 7
	// The delay starts at firstDelay. It doubles with each further failure beyond the free ones, up to maxDelay.
	firstDelay, maxDelay = 100 * time.Millisecond, 5 * time.Second
	maxWaitingPerName    = 8
	// maxNames limits the tracked names. Names whose last failure is oldest are dropped first.
	maxNames = 20_000
)

// MaxWaiting limits the concurrent delays in total. maxWaitingPerName limits them for each name. Failures beyond these
// limits are rejected immediately.
const MaxWaiting = 128

// Failures slows down callers that fail repeatedly, for example by guessing keys. Create it with NewFailures. A name
// is usually the caller's address.
type Failures struct {
	now func() time.Time

	mu    sync.Mutex
	names map[string]*list.Element
	// order lists the entries, most recent failure first.
	order   *list.List
	waiting int
}

type failing struct {
	name    string
	count   int
	since   time.Time
	waiting int
}

func NewFailures(now func() time.Time) *Failures {
	return &Failures{now: now, names: map[string]*list.Element{}, order: list.New()}
}

// Admit returns nil if a caller with the name may make an attempt now.
//
// Errors: fault.Limited with RetryAfter if too many failed attempts by the name are waiting.
func (f *Failures) Admit(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	element, ok := f.names[name]
	if !ok {
		return nil
	}
	one := element.Value.(*failing)
	delay := f.delay(one)
	if one.waiting < maxWaitingPerName && (delay == 0 || f.waiting < MaxWaiting) {
		return nil
	}
	return tooManyFailures(delay)
}

// Failed counts a failure, and returns after the delay or when the context ends.
//
// Errors: fault.Limited with RetryAfter, without a delay, if too many failed attempts are already waiting.
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

// count counts a failure. It returns the delay and a function to call after the wait.
func (f *Failures) count(name string) (delay time.Duration, done func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.find(name)
	one.count = min(one.count+1, maxFailures)
	delay = f.delay(one)
	switch {
	case delay == 0:
		return 0, nil, nil
	case one.waiting >= maxWaitingPerName || f.waiting >= MaxWaiting:
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
	// If the clock was set back, no failure is forgiven.
	if forgiven := int(max(now.Sub(one.since), 0) / forgiveEvery); forgiven > 0 {
		one.count, one.since = max(one.count-forgiven, 0), now
	}
	return one
}

func (f *Failures) delay(one *failing) time.Duration {
	beyond := one.count - freeFailures
	if beyond <= 0 {
		return 0
	}
	return min(firstDelay<<(beyond-1), maxDelay)
}

func tooManyFailures(delay time.Duration) error {
	err := fault.New(fault.Limited, "Too many failed attempts from this address. Try again later.")
	err.RetryAfter = max(delay, time.Second)
	return err
}
