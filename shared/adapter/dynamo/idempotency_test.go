package dynamo_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/idempotency"
	"cutroom/shared/domain/idempotency/idempotencytest"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

func TestIdempotencyKeysConform(t *testing.T) {
	cloud := local.Cloud(t)
	idempotencytest.Run(t, func(t *testing.T) idempotency.Store {
		return dynamo.NewIdempotencyKeys(client(cloud), cloud.MakeTable(t, "usage"))
	})
	t.Run("calls", func(t *testing.T) { testCallsOfIdempotencyKeys(t, cloud) })
	t.Run("trouble", func(t *testing.T) { testClaimsThroughTrouble(t, cloud) })
}

func testCallsOfIdempotencyKeys(t *testing.T, cloud *awstest.Cloud) {
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	store := dynamo.NewIdempotencyKeys(dynamo.NewClient(proxy.Config()), cloud.MakeTable(t, "usage"))
	ctx, now := t.Context(), time.Now()
	claim := idempotency.Claim{Account: "acme", Key: "k", Fingerprint: "f", Resource: "r"}
	asDocumented(t, proxy, "IdempotencyKeys", calls{
		{"Claim", func() error { _, err := store.Claim(ctx, claim, "", now); return err }},
		{"Withdraw", func() error { return store.Withdraw(ctx, claim) }},
		{"Settle", func() error { return store.Settle(ctx, claim, nil) }},
		{"Resource", func() error { _, err := store.Resource(ctx, "acme", "k", now); return err }},
	})
}

// If many requests have the same key, exactly one is the first, even if calls fail. All others receive its response.
func testClaimsThroughTrouble(t *testing.T, cloud *awstest.Cloud) {
	const keys, requests = 8, 6
	proxy := cloud.Proxy(t, 11, trouble)
	service := &idempotency.Service{
		Store: dynamo.NewIdempotencyKeys(dynamo.NewClient(proxy.Config()), cloud.MakeTable(t, "usage")), Now: time.Now,
	}
	nothing := func(context.Context, string) ([]byte, bool, error) { return nil, false, nil }
	for key := range keys {
		var first atomic.Value
		claimed := make([]string, requests)
		for _, err := range conformance.Race(requests, func(request int) error {
			claim := idempotency.Claim{Account: "acme", Key: fmt.Sprint(key), Fingerprint: "f",
				Resource: fmt.Sprint("r", request)}
			return until(t.Context(), func() error {
				earlier, err := service.Begin(t.Context(), claim, nothing)
				switch {
				case err != nil:
					return err
				case earlier != nil:
					claimed[request] = earlier.Resource
					return nil
				}
				if before := first.Swap(claim.Resource); before != nil && before != claim.Resource {
					t.Errorf("both %v and %s are the first of key %d", before, claim.Resource, key)
				}
				claimed[request] = claim.Resource
				return until(t.Context(), func() error { return service.Settle(t.Context(), claim, nil) })
			})
		}) {
			conformance.OK(t, err)
		}
		for _, resource := range claimed {
			if resource != first.Load() {
				t.Errorf("a request with key %d received %q, but the first is %v", key, resource, first.Load())
			}
		}
	}
	t.Logf("met %v", proxy.Met())
}
