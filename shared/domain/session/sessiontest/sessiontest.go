// Package sessiontest specifies the behavior of [session.Store].
package sessiontest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cutroom/shared/domain/session"
	"cutroom/shared/testkit/conformance"
)

type Harness struct {
	Store session.Store
	// Pass advances the store's clock, which ages leases.
	Pass func(time.Duration)
}

// Run calls `open` once per test. That function must register a cleanup that closes its store.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	conformance.Run(t, func(t *testing.T, group string, test test) {
		test.run(&suite{T: t, Harness: open(t), ctx: conformance.Context(t)})
	},
		conformance.About("Take", takeTests), conformance.About("Free", freeTests), conformance.About("Leases", leaseTests),
		conformance.About("Races", raceTests), conformance.About("Queue", queueTests),
		conformance.About("Races in a queue", queueRaceTests),
	)
}

type test struct {
	name string
	run  func(s *suite)
}

func (t test) Says() string { return t.name }

type suite struct {
	*testing.T
	Harness
	ctx context.Context
}

const (
	one, two = "epoch-one", "epoch-two"
	account  = "acme"
	moment   = time.Second
)

func (s *suite) begin(epochs ...string) {
	s.Helper()
	for _, epoch := range epochs {
		conformance.OK(s, s.Store.Begin(s.ctx, epoch, ""))
	}
}

func slot(number int, epoch string) session.Slot {
	return session.Slot{ID: fmt.Sprintf("session_%03d", number), Account: account, Epoch: epoch}
}

func (s *suite) take(slots ...session.Slot) {
	s.Helper()
	for _, slot := range slots {
		conformance.OK(s, s.Store.Take(s.ctx, slot, 0))
	}
}

func (s *suite) active(account string, want int) {
	s.Helper()
	got, err := s.Store.Active(s.ctx, account)
	conformance.OK(s, err)
	if got != want {
		s.Errorf("%s has %d open slots, want %d", account, got, want)
	}
}
