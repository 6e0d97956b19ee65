package dynamo_test

import (
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fleet"
	"cutroom/shared/domain/job"
)

func TestFleetStoreKeepsConcurrentWrites(t *testing.T) {
	cloud := local.Cloud(t)
	store := dynamo.NewFleetStore(dynamo.NewClient(cloud.Config()), cloud.MakeTable(t, "jobs"))
	ctx, now := t.Context(), time.UnixMilli(1795176000123).UTC()
	is := func(want fleet.State) {
		t.Helper()
		if got, err := store.Read(ctx); err != nil || got != want {
			t.Errorf("the state is %+v (%v), want %+v", got, err, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	is(fleet.State{})
	must(store.Saw(ctx, time.Time{}, job.Fleet{SeenAt: now}))
	is(fleet.State{Fleet: job.Fleet{SeenAt: now}})
	must(store.Wake(ctx, now))
	seen := job.Fleet{SeenAt: now, Running: 1, Wanted: 3, Most: 8, WantedSince: now.Add(-time.Minute),
		ShortSince: now.Add(-time.Second), StartTime: 90 * time.Second}
	must(store.Saw(ctx, now.Add(time.Minute), seen))
	is(fleet.State{WokenAt: now, ExcessSince: now.Add(time.Minute), Fleet: seen})
	must(store.Wake(ctx, now.Add(-time.Second))) // by a clock that is behind
	is(fleet.State{WokenAt: now, ExcessSince: now.Add(time.Minute), Fleet: seen})
	must(store.Wake(ctx, now.Add(time.Second)))
	must(store.Saw(ctx, time.Time{}, job.Fleet{SeenAt: now.Add(time.Hour)}))
	is(fleet.State{WokenAt: now.Add(time.Second), Fleet: job.Fleet{SeenAt: now.Add(time.Hour)}})
}
