// Package idempotency lets a client repeat a request whose response was lost, without creating
// anything twice. A request with a key that was used before gets the response to the first request.
//
// A request claims its key right before it creates a resource, and records the resource's id in the claim. It
// settles the claim afterwards. If the request crashes in between, the id shows whether the resource was created.
package idempotency

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// Age is how long a key is remembered.
	Age    = 24 * time.Hour
	MaxKey = 255 // in bytes
	// MakeTime limits how long after a claim the resource may be created. The caller enforces it.
	MakeTime = 15 * time.Second
	// Abandoned is the age of an unsettled claim after which its request can no longer create anything. It allows
	// for clock differences and store calls that take effect after their timeout.
	Abandoned = 2 * MakeTime
	// maxWait limits how long a request waits for another request with the same key. The checks
	// become less frequent, because most requests end quickly.
	maxWait                = 5 * time.Second
	firstPause, laterPause = 20 * time.Millisecond, time.Second
	// comeBack is the Retry-After that is sent after maxWait. It is long enough that a client with
	// four attempts outlasts a claim that is never settled.
	comeBack = 5 * time.Second
	endTime  = 5 * time.Second // for settling or withdrawing a claim
)

type Claim struct {
	Account, Key string
	// Fingerprint identifies the content of the request. It is the same for every retry.
	Fingerprint string
	// Resource is the id of the resource to create. It is unique for each request.
	Resource string
}

type Record struct {
	Fingerprint, Resource string
	// Settled means that the resource was created. In that case Response is the stored response, if any.
	Settled   bool
	Response  []byte
	ClaimedAt time.Time
}

type Store interface {
	// Claim records the claim unless the key has a record younger than Age. If the parameter `instead` is not empty,
	// it is a resource whose unsettled record Claim also replaces. Claim returns the key's current record. If that
	// record names the claim's own resource, the claim won. Claim is exact under concurrency.
	Claim(ctx context.Context, c Claim, instead string, now time.Time) (Record, error)
	// Settle records that the claim's resource was created, unless the claim has been replaced or settled.
	Settle(ctx context.Context, c Claim, response []byte) error
	// Withdraw removes an unsettled claim that has not been replaced.
	Withdraw(ctx context.Context, c Claim) error
	// Resource returns the resource of the key's record, even if it is not settled, or "" if the key
	// has no record younger than Age.
	Resource(ctx context.Context, account, key string, now time.Time) (string, error)
}

// Made reports whether the resource of an abandoned claim was created, and returns its response. It
// first completes a creation that was interrupted.
type Made func(ctx context.Context, resource string) (response []byte, made bool, err error)

type Service struct {
	Store Store
	Now   func() time.Time
}

// Begin claims the key. For the first request it returns nil, and the caller must call Settle or Withdraw. For a
// repeated request it returns the record of the first request, and may wait some seconds for it.
//
// Errors: fault.Conflict if the key was used for a different request, or, with RetryAfter, if another request with
// the key is still in progress.
func (s *Service) Begin(ctx context.Context, c Claim, made Made) (*Record, error) {
	instead, pause := "", firstPause
	for began := s.Now(); ; {
		record, err := s.Store.Claim(ctx, c, instead, s.Now())
		switch {
		case err != nil:
			return nil, fmt.Errorf("idempotency: claim a key: %w", err)
		case record.Resource == c.Resource:
			return nil, nil
		case record.Fingerprint != c.Fingerprint:
			return nil, fault.New(fault.Conflict, "The Idempotency-Key was already used for another request.")
		case record.Settled:
			return &record, nil
		case s.Now().Sub(record.ClaimedAt) >= Abandoned:
			response, there, err := made(ctx, record.Resource)
			if err != nil {
				return nil, fmt.Errorf("idempotency: check the claimed resource: %w", err)
			}
			if there {
				c.Resource = record.Resource
				if err := s.Settle(ctx, c, response); err != nil {
					return nil, err
				}
				record.Settled, record.Response = true, response
				return &record, nil
			}
			instead = record.Resource
			continue
		case s.Now().Sub(began) >= maxWait:
			busy := fault.New(fault.Conflict, "Another request with this Idempotency-Key is still in progress.")
			busy.RetryAfter = comeBack
			return nil, busy
		}
		timer := time.NewTimer(pause)
		pause = min(2*pause, laterPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

// Settle works even if the context has ended.
func (s *Service) Settle(ctx context.Context, c Claim, response []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := s.Store.Settle(ctx, c, response); err != nil {
		return fmt.Errorf("idempotency: settle a claim: %w", err)
	}
	return nil
}

// Withdraw works even if the context has ended.
func (s *Service) Withdraw(ctx context.Context, c Claim) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := s.Store.Withdraw(ctx, c); err != nil {
		return fmt.Errorf("idempotency: withdraw a claim: %w", err)
	}
	return nil
}

// Resource returns the resource of an account's key, or "" if the key was not used before.
func (s *Service) Resource(ctx context.Context, account, key string) (string, error) {
	resource, err := s.Store.Resource(ctx, account, key, s.Now())
	if err != nil {
		return "", fmt.Errorf("idempotency: look up a key: %w", err)
	}
	return resource, nil
}
