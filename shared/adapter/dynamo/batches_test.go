package dynamo_test

import (
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

func TestBatchClaimsExpire(t *testing.T) {
	cloud, ctx := local.Cloud(t), t.Context()
	batches := dynamo.NewBatches(client(cloud), cloud.MakeTable(t, "usage"))
	now := time.Now().UTC().Truncate(time.Millisecond)
	claim := func(holder string, after time.Duration, want bool) {
		t.Helper()
		at := now.Add(after)
		claimed, err := batches.Claim(ctx, "batch_1", holder, at, at.Add(time.Minute))
		if conformance.OK(t, err); claimed != want {
			t.Fatalf("%s has claimed the batch: %v", holder, claimed)
		}
	}
	release := func(holder string, due time.Duration, fruitless int) {
		t.Helper()
		conformance.OK(t, batches.Release(ctx, "batch_1", holder, now.Add(due), fruitless))
	}
	stands := func(after time.Duration, held, waits bool, fruitless int) {
		t.Helper()
		all, err := batches.Standings(ctx)
		if conformance.OK(t, err); len(all) != 1 || all[0].Account != "acme" || all[0].Fruitless != fruitless {
			t.Fatalf("got %+v", all)
		}
		if at := now.Add(after); all[0].Held(at) != held || all[0].Waits(at) != waits {
			t.Fatalf("it is held: %v, and waits: %v", all[0].Held(at), all[0].Waits(at))
		}
	}
	claim("nobody", 0, false) // the batch does not exist
	b := batch.Batch{ID: "batch_1", Account: "acme", Status: batch.Validating, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	conformance.OK(t, batches.Create(ctx, b, 0, 0))
	stands(0, false, true, 0)
	claim("first", 0, true)
	claim("first", 0, true) // a retry after a lost response
	claim("second", time.Second, false)
	stands(time.Second, true, false, 0)
	stands(time.Minute, false, true, 0)
	claim("second", time.Minute, true) // the first process has died
	release("first", 0, 7)             // or the first process is still running
	stands(time.Minute, true, false, 0)
	release("second", 3*time.Minute, 2)
	release("second", 3*time.Minute, 2)
	stands(time.Minute, false, false, 2)
	stands(3*time.Minute, false, true, 2)
	conformance.OK(t, batches.Release(ctx, "batch_1", "second", now.Add(2*time.Hour), 3))
	stands(time.Hour, false, true, 3) // the claim has expired
	b.Status = batch.Cancelling
	conformance.OK(t, batches.Change(ctx, batch.Validating, b))
	stands(0, false, true, 3)
}

func TestBatchCallsMatchDocumentation(t *testing.T) {
	cloud, ctx := local.Cloud(t), t.Context()
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	store := dynamo.NewBatches(dynamo.NewClient(proxy.Config()), cloud.MakeTable(t, "usage"))
	now := time.Now().UTC().Truncate(time.Millisecond)
	b := batch.Batch{ID: "batch_1", Account: "acme", Status: batch.Validating, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	used := usage.Record{ID: "a", Account: "acme", Model: "m", Day: "2026-02-02", Counts: usage.Counts{Requests: 1}}
	ended := b
	ended.Status, ended.EndedAt, ended.Revision = batch.Completed, now, 1
	asDocumented(t, proxy, "Batches", calls{
		{"Create", func() error { return store.Create(ctx, b, batch.MaxOpen, batch.MaxKept) }},
		{"Get", func() error { _, err := store.Get(ctx, "acme", b.ID); return err }},
		{"List", func() error { _, err := store.List(ctx, "acme", "", 10); return err }},
		{"Standings", func() error { _, err := store.Standings(ctx); return err }},
		{"Claim", func() error { _, err := store.Claim(ctx, b.ID, "me", now, now.Add(time.Minute)); return err }},
		{"Change", func() error { return store.Change(ctx, batch.Validating, b) }},
		{"Save", func() error {
			return store.Save(ctx, b.ID, []batch.Chunk{{Blob: "a", Lines: []int{1}}}, []usage.Record{used})
		}},
		{"Chunks", func() error { _, err := store.Chunks(ctx, b.ID); return err }},
		{"Release", func() error { return store.Release(ctx, b.ID, "me", now, 0) }},
		{"Change to an end", func() error { return store.Change(ctx, batch.Validating, ended) }},
		{"Cleared", func() error { return store.Cleared(ctx, b.ID) }},
		{"Forget", func() error { return store.Forget(ctx, now.Add(time.Second)) }},
	})
}
