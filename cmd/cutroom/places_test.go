package main_test

import (
	"testing"

	"cutroom/shared/testkit/servertest"
)

// While one account's long edits occupy its slot and wait in the queue, another account's edits still run.
func TestNoAccountHoldsEverySlot(t *testing.T) {
	t.Parallel()
	ctx, data := steps(t), t.TempDir()
	settings := []string{"CUTROOM_WORKERS=1", "CUTROOM_CATALOG=" + save(t, defaultCatalog(t))}
	server := start(t, data, settings...)
	hostile := server.Client()
	other := &servertest.Client{URL: server.URL(), Key: newKey(t, data, settings, "--account", "acme")}
	running, waiting := submit(ctx, t, hostile, fixtures.endless), submit(ctx, t, hostile, fixtures.endless)
	status := func(id string) string {
		job, err := hostile.Job(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return job.Status
	}
	eventually(t, "the long edit runs", func() bool { return status(running) == "processing" })

	for range 2 {
		id := submit(ctx, t, other, fixtures.tiny)
		if job, err := other.Await(bounded(t), id, nil); err != nil || job.Status != "completed" {
			t.Fatalf("the other account's edit: %+v, %v", job, err)
		}
	}
	if first, second := status(running), status(waiting); first != "processing" || second != "pending" {
		t.Errorf("during that time the long edits became %s and %s, want processing and pending", first, second)
	}
}
