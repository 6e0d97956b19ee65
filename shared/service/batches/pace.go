package batches

import (
	"context"
	"sync"
	"time"
)

const (
	// The shortest and longest pause after a temporary rejection.
	leastPause, mostPause = time.Second, 30 * time.Second
)

// pace determines how many of a batch's calls run at once. It lowers the number after a temporary
// rejection, and raises it from n to n+1 after n responses.
type pace struct {
	most int

	mu      sync.Mutex
	current int
	// inFlight is the number of running calls. answered counts the responses since the limit (current) last changed.
	inFlight, answered int
	until              time.Time
	// refusedSince is when the uninterrupted rejections began, or zero.
	refusedSince time.Time
	// changed is closed and replaced when a call ends.
	changed chan struct{}
}

func newPace(most int) *pace { return &pace{most: most, current: most, changed: make(chan struct{})} }

// begin waits until a call may be made. The caller must end the call with one of the methods below.
// begin returns false if the context ends first.
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
			wait = mostPause // a change will end the wait earlier
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

// end ends a call whose result does not affect the pace.
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

func (p *pace) took() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusedSince = time.Time{}
	if p.answered++; p.answered >= p.current && p.current < p.most {
		p.current, p.answered = p.current+1, 0
	}
	p.ended()
}

// refused ends a call that was temporarily rejected. The next call waits until a running call ends.
// If no call is running, it waits for the given time.
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

// cut ends a call whose slot a live call took. All calls pause, because live calls often come in bursts.
func (p *pace) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(leastPause)
	p.ended()
}

// refusedFor returns how long all calls have been rejected, or 0 while a running call may still succeed.
func (p *pace) refusedFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusedSince.IsZero() || p.inFlight > 0 {
		return 0
	}
	return time.Since(p.refusedSince)
}
