// Package idempotencytest specifies the behavior of [idempotency.Store].
package idempotencytest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/idempotency"
	"cutroom/shared/testkit/conformance"
)

// Run calls `open` once per test. That function must register a cleanup that closes its store.
func Run(t *testing.T, open func(t *testing.T) idempotency.Store) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.run(&suite{T: t, store: open(t), ctx: conformance.Context(t), now: conformance.Tomorrow()})
		})
	}
}

type suite struct {
	*testing.T
	store idempotency.Store
	ctx   context.Context
	now   time.Time
}

func claimOf(resource string) idempotency.Claim {
	return idempotency.Claim{Account: "acme", Key: "k", Fingerprint: "asks for " + resource, Resource: resource}
}

func (s *suite) claim(c idempotency.Claim, instead string, after time.Duration) idempotency.Record {
	s.Helper()
	record, err := s.store.Claim(s.ctx, c, instead, s.now.Add(after))
	conformance.OK(s, err)
	return record
}

// has checks that the record belongs to the unsettled claim.
func (s *suite) has(record idempotency.Record, c idempotency.Claim, after time.Duration) {
	s.Helper()
	if record.Resource != c.Resource || record.Fingerprint != c.Fingerprint || record.Settled || len(record.Response) > 0 ||
		!record.ClaimedAt.Equal(s.now.Add(after)) {
		s.Fatalf("the record is %+v, want that of %+v at %v", record, c, s.now.Add(after))
	}
}

var tests = []struct {
	name string
	run  func(s *suite)
}{
	{"the first claim of a key wins it", func(s *suite) {
		s.has(s.claim(claimOf("a"), "", 0), claimOf("a"), 0)
	}},
	{"a later claim gets the record of the first claim", func(s *suite) {
		s.claim(claimOf("a"), "", 0)
		s.has(s.claim(claimOf("b"), "", time.Second), claimOf("a"), 0)
	}},
	{"a claim repeated after a lost response still has the key", func(s *suite) {
		s.claim(claimOf("a"), "", 0)
		if record := s.claim(claimOf("a"), "", 0); record.Resource != "a" {
			s.Fatalf("the record is %+v", record)
		}
	}},
	{"keys of other accounts, and other keys, are separate", func(s *suite) {
		s.claim(claimOf("a"), "", 0)
		other := claimOf("b")
		other.Account = "acme2"
		s.has(s.claim(other, "", 0), other, 0)
		other = claimOf("c")
		other.Key = "k2"
		s.has(s.claim(other, "", 0), other, 0)
	}},
	{"names that are equal when concatenated are separate", func(s *suite) {
		one := idempotency.Claim{Account: "a", Key: "b/c", Fingerprint: "1", Resource: "1"}
		two := idempotency.Claim{Account: "a/b", Key: "c", Fingerprint: "2", Resource: "2"}
		s.claim(one, "", 0)
		s.has(s.claim(two, "", 0), two, 0)
	}},
	{"a settled claim returns its response", func(s *suite) {
		s.claim(claimOf("a"), "", 0)
		conformance.OK(s, s.store.Settle(s.ctx, claimOf("a"), []byte("\x00it is there\xff")))
		record := s.claim(claimOf("b"), "", time.Second)
		if !record.Settled || string(record.Response) != "\x00it is there\xff" || record.Resource != "a" {
			s.Fatalf("the record is %+v", record)
		}
	}},
	{"a claim may be settled without a response, and more than once", func(s *suite) {
		s.claim(claimOf("a"), "", 0)
		for range 2 {
			conformance.OK(s, s.store.Settle(s.ctx, claimOf("a"), nil))
		}
		if record := s.claim(claimOf("b"), "", 0); !record.Settled || len(record.Response) > 0 {
			s.Fatalf("the record is %+v", record)
		}
	}},
	{"a withdrawn claim leaves the key to the next claim", func(s *suite) {
		s.claim(claimOf("a"), "", 0)
		conformance.OK(s, s.store.Withdraw(s.ctx, claimOf("a")))
		s.has(s.claim(claimOf("b"), "", time.Second), claimOf("b"), time.Second)
	}},
	{"a settled claim cannot be withdrawn", func(s *suite) {
		s.claim(claimOf("a"), "", 0)
		conformance.OK(s, s.store.Settle(s.ctx, claimOf("a"), nil))
		conformance.OK(s, s.store.Withdraw(s.ctx, claimOf("a")))
		if record := s.claim(claimOf("b"), "", 0); record.Resource != "a" {
			s.Fatalf("the record is %+v", record)
		}
	}},
	{"a claim replaces the unsettled claim that it names", func(s *suite) {
		s.claim(claimOf("a"), "", 0)
		s.has(s.claim(claimOf("b"), "a", time.Minute), claimOf("b"), time.Minute)
		s.has(s.claim(claimOf("c"), "a", time.Minute), claimOf("b"), time.Minute)
	}},
	{"a claim does not replace a settled claim", func(s *suite) {
		s.claim(claimOf("a"), "", 0)
		conformance.OK(s, s.store.Settle(s.ctx, claimOf("a"), nil))
		if record := s.claim(claimOf("b"), "a", time.Minute); record.Resource != "a" {
			s.Fatalf("the record is %+v", record)
		}
	}},
	{"a replaced claim can neither be settled nor withdrawn", func(s *suite) {
		s.claim(claimOf("a"), "", 0)
		s.claim(claimOf("b"), "a", time.Minute)
		conformance.OK(s, s.store.Settle(s.ctx, claimOf("a"), []byte("late")))
		conformance.OK(s, s.store.Withdraw(s.ctx, claimOf("a")))
		s.has(s.claim(claimOf("c"), "", time.Minute), claimOf("b"), time.Minute)
	}},
	{"a key is forgotten after its age", func(s *suite) {
		s.claim(claimOf("a"), "", 0)
		conformance.OK(s, s.store.Settle(s.ctx, claimOf("a"), []byte("old")))
		if record := s.claim(claimOf("b"), "", idempotency.Age-time.Millisecond); record.Resource != "a" {
			s.Fatalf("before its age the record is %+v", record)
		}
		s.has(s.claim(claimOf("b"), "", idempotency.Age), claimOf("b"), idempotency.Age)
	}},
	{"a key has its claim's resource until it is withdrawn or expires", func(s *suite) {
		resource := func(key string, after time.Duration, want string) {
			s.Helper()
			got, err := s.store.Resource(s.ctx, "acme", key, s.now.Add(after))
			conformance.OK(s, err)
			if got != want {
				s.Fatalf("after %v the key %s has the resource %q, want %q", after, key, got, want)
			}
		}
		resource("k", 0, "")
		s.claim(claimOf("a"), "", 0)
		resource("k", 0, "a")
		resource("l", 0, "")
		conformance.OK(s, s.store.Withdraw(s.ctx, claimOf("a")))
		resource("k", 0, "")
		s.claim(claimOf("b"), "", 0)
		conformance.OK(s, s.store.Settle(s.ctx, claimOf("b"), nil))
		resource("k", idempotency.Age-time.Millisecond, "b")
		resource("k", idempotency.Age, "")
	}},
	{"one of many concurrent claims wins the key", func(s *suite) {
		var won atomic.Int64
		for _, err := range conformance.Race(20, func(racer int) error {
			c := claimOf(fmt.Sprint("r", racer))
			record, err := s.store.Claim(s.ctx, c, "", s.now)
			if record.Resource == c.Resource {
				won.Add(1)
			}
			return err
		}) {
			conformance.OK(s, err)
		}
		if won.Load() != 1 {
			s.Fatalf("%d claims have the key, want 1", won.Load())
		}
	}},
}
