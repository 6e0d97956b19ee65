package batches

import (
	"context"
	"sync"
	"time"
)

const (
	// leastPause and mostPause bound for how long a batch makes no calls after one was
	// refused for now.
	leastPause, mostPause = time.Second, 30 * time.Second
)

// pace finds out how many calls of a batch are taken at once: fewer after one was
// refused for now, and one more after as many as that were answered.
type pace struct {
	most int

	mu      sync.Mutex
	current int
	// inFlight is how many calls are made, answered how many were since current has
	// changed.
	inFlight, answered int
	// until is until when no call is made.
	until time.Time
	// refusedSince is since when every call was refused; zero if the last one was not.
	refusedSince time.Time
	// changed is closed when a call has ended, and made anew.
	changed chan struct{}
}

func newPace(most int) *pace { return &pace{most: most, current: most, changed: make(chan struct{})} }

// begin waits until a call may be made, and reports whether it may before the context
// ends. One of the methods below ends the call.
func (p *pace) begin(ctx context.Context) bool {
	for ctx.Err() == nil {
		p.mu.Lock()
		wait := time.Until(p.until)
		if wait <= 0 && p.inFlight < p.current {
			p.inFlight++
			p.mu.Unlock()
			return true
		}
		changed := p.changed
		p.mu.Unlock()
		if wait <= 0 {
			wait = mostPause // something changes before
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return false
}

// end is the end of a call that says nothing about others.
func (p *pace) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusedSince = time.Time{}
	p.ended()
}

func (p *pace) ended() {
	p.inFlight--
	close(p.changed)
	p.changed = make(chan struct{})
}

// took is the end of a call that was answered.
func (p *pace) took() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusedSince = time.Time{}
	if p.answered++; p.answered >= p.current && p.current < p.most {
		p.current, p.answered = p.current+1, 0
	}
	p.ended()
}

// refused is the end of a call that was refused for now. Another one is made when one
// that is under way has ended, or after the time if there is none.
func (p *pace) refused(retryAfter time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusedSince.IsZero() {
		p.refusedSince = time.Now()
	}
	others := p.inFlight - 1
	p.current, p.answered = min(max(others, 1), p.current), 0
	if others == 0 {
		p.until = time.Now().Add(min(max(retryAfter, leastPause), mostPause))
	}
	p.ended()
}

// refusedFor returns for how long every call was refused. It is 0 while one is made that may
// be answered yet.
func (p *pace) refusedFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusedSince.IsZero() || p.inFlight > 0 {
		return 0
	}
	return time.Since(p.refusedSince)
}
