// Package idempotency lets a client send a request again whose answer it has lost,
// without making what it asks for twice: the request carries a key of the client's
// choice, and one with a key that was used before is given the first one's answer.
//
// A request claims its key right before it makes something, under the id of what it
// is about to make, and settles the claim once that is there. A request that dies
// in between leaves a claim whose id tells whether it was made.
package idempotency

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// Age is for how long a key is remembered.
	Age = 24 * time.Hour
	// MaxKey is how long a key may be, in bytes.
	MaxKey = 255
	// MakeTime is how long a request has, from its claim on, to make what it
	// claimed the key for. Whoever makes it ends it then.
	MakeTime = 15 * time.Second
	// Abandoned is how old an unsettled claim is when the request that made it
	// makes nothing any more for certain, whatever two machines' clocks differ by,
	// and however late a call of a store takes effect that was given up on.
	Abandoned = 2 * MakeTime
	// patience is for how long a request waits for the end of another one with
	// the same key. It looks soon, as most end within moments, and then less and
	// less often.
	patience             = 5 * time.Second
	firstLook, laterLook = 20 * time.Millisecond, time.Second
	// comeBack is when to try again once patience is over: a client that tries
	// four times so outlasts a claim that nobody settles.
	comeBack = 5 * time.Second
	// endTime is how long it may take to settle or withdraw a claim.
	endTime = 5 * time.Second
)

// Claim is a request's claim of a key.
type Claim struct {
	// Account and Key name the claim: the same key of another account is another.
	Account, Key string
	// Fingerprint tells requests apart: two that ask for the same have the same.
	Fingerprint string
	// Resource is the id of what the request makes, which no other request has.
	Resource string
}

// Record is what is known of a key.
type Record struct {
	Fingerprint, Resource string
	// Settled says that the resource was made, and then Answer what was said of
	// it, if anything was.
	Settled bool
	Answer  []byte
	// ClaimedAt is when the claim was made, to the millisecond.
	ClaimedAt time.Time
}

// Store keeps claims. Its behaviour is checked by the suite in idempotencytest,
// which every adapter runs.
type Store interface {
	// Claim records the claim where its key has no record, or one of Age, or an
	// unsettled one of the resource instead (which is empty for none), and gives
	// the record of the key as it then is: the claim's own when the resources
	// are the same. It is exact under any concurrency.
	Claim(ctx context.Context, c Claim, instead string, now time.Time) (Record, error)
	// Settle says that the claim's resource was made. A claim that another one
	// has replaced, or that is settled, is left alone, without error.
	Settle(ctx context.Context, c Claim, answer []byte) error
	// Withdraw takes an unsettled claim back. One that another one has replaced,
	// or that is settled, is left alone, without error.
	Withdraw(ctx context.Context, c Claim) error
	// Known tells whether the key has a record of less than Age, settled or not.
	Known(ctx context.Context, account, key string, now time.Time) (bool, error)
}

// Made tells whether the resource of a claim was made whose request is gone, and
// the answer that its request would have settled it with. What is half made it
// completes.
type Made func(ctx context.Context, resource string) (answer []byte, made bool, err error)

// Service gives each key to one request.
type Service struct {
	Store Store
	Now   func() time.Time
}

// Begin claims the key. It gives nil when the request is the first and has to go
// on, and then to call Settle or Withdraw; else what the first one was answered,
// which may mean a wait of seconds for it.
//
// Errors: fault.Conflict when the key was used for another request; with
// RetryAfter when another request with it is still under way.
func (s *Service) Begin(ctx context.Context, c Claim, made Made) (*Record, error) {
	instead, pause := "", firstLook
	for began := s.Now(); ; {
		record, err := s.Store.Claim(ctx, c, instead, s.Now())
		switch {
		case err != nil:
			return nil, fmt.Errorf("idempotency: claim a key: %w", err)
		case record.Resource == c.Resource:
			return nil, nil
		case record.Fingerprint != c.Fingerprint:
			return nil, fault.New(fault.Conflict, "The Idempotency-Key was used for another request.")
		case record.Settled:
			return &record, nil
		case s.Now().Sub(record.ClaimedAt) >= Abandoned:
			answer, there, err := made(ctx, record.Resource)
			if err != nil {
				return nil, fmt.Errorf("idempotency: look for what was made: %w", err)
			}
			if there {
				c.Resource = record.Resource
				if err := s.Settle(ctx, c, answer); err != nil {
					return nil, err
				}
				record.Settled, record.Answer = true, answer
				return &record, nil
			}
			instead = record.Resource
			continue
		case s.Now().Sub(began) >= patience:
			busy := fault.New(fault.Conflict, "A request with this Idempotency-Key is still under way.")
			busy.RetryAfter = comeBack
			return nil, busy
		}
		timer := time.NewTimer(pause)
		pause = min(2*pause, laterLook)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

// Settle says that what the claim is for was made, and what was said of it. The
// end of the context does not keep it from that.
func (s *Service) Settle(ctx context.Context, c Claim, answer []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := s.Store.Settle(ctx, c, answer); err != nil {
		return fmt.Errorf("idempotency: settle a claim: %w", err)
	}
	return nil
}

// Withdraw takes the claim of a request back that made nothing, for certain. The
// end of the context does not keep it from that.
func (s *Service) Withdraw(ctx context.Context, c Claim) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := s.Store.Withdraw(ctx, c); err != nil {
		return fmt.Errorf("idempotency: withdraw a claim: %w", err)
	}
	return nil
}

// Known tells whether an account's key was used before: a request that has it
// makes nothing new, whatever comes of it.
func (s *Service) Known(ctx context.Context, account, key string) (bool, error) {
	known, err := s.Store.Known(ctx, account, key, s.Now())
	if err != nil {
		return false, fmt.Errorf("idempotency: look for a key: %w", err)
	}
	return known, nil
}
