package sqlite_test

import (
	"testing"
	"time"

	"cutroom/shared/domain/idempotency"
	"cutroom/shared/domain/idempotency/idempotencytest"
	"cutroom/shared/testkit/conformance"
)

func TestIdempotencyKeysConform(t *testing.T) {
	idempotencytest.Run(t, func(t *testing.T) idempotency.Store { return open(t).IdempotencyKeys() })
}

// A crashed process's claims are resolved immediately, no matter what its clock showed.
func TestAbandonResolvesUnsettledClaims(t *testing.T) {
	ctx, now := t.Context(), time.Now().UTC().Truncate(time.Millisecond)
	keys := open(t).IdempotencyKeys()
	claim := func(key string, at time.Time) idempotency.Record {
		t.Helper()
		record, err := keys.Claim(ctx, idempotency.Claim{Account: "acme", Key: key, Fingerprint: "f", Resource: "of " + key},
			"", at)
		conformance.OK(t, err)
		return record
	}
	claim("ahead", now.Add(time.Hour))
	claim("fresh", now)
	old := claim("old", now.Add(-time.Hour)).ClaimedAt
	claim("settled", now)
	conformance.OK(t, keys.Settle(ctx, idempotency.Claim{Account: "acme", Key: "settled", Resource: "of settled"}, nil))
	conformance.OK(t, keys.Abandon(ctx, now))
	for key, want := range map[string]time.Time{
		"ahead": now.Add(-idempotency.Abandoned), "fresh": now.Add(-idempotency.Abandoned), "old": old, "settled": now,
	} {
		if got := claim(key, now).ClaimedAt; !got.Equal(want) {
			t.Errorf("the claim %q was made at %v, want %v", key, got, want)
		}
	}
}
