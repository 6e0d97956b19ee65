package main_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"cutroom/shared/testkit/servertest"
)

// The server is stopped in both of the usual ways during an edit.
func TestRestartLosesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*servertest.Server, context.Context) (int, error){
		"terminated by a service manager": (*servertest.Server).Stop,
		"interrupted by Ctrl-C":           (*servertest.Server).Interrupt,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, data := steps(t), t.TempDir()
			// Even with a tenth of the pixels, an edit takes long enough to stop the server in the middle of it.
			settings := []string{"CUTROOM_WORKERS=1", "CUTROOM_CATALOG=" +
				save(t, bytes.ReplaceAll(defaultCatalog(t), []byte("1088x624"), []byte("320x180")))}
			server := start(t, data, settings...)
			client := server.Client()
			done := submit(ctx, t, client, fixtures.tiny)
			if job, err := client.Await(bounded(t), done, nil); err != nil || job.Status != "completed" {
				t.Fatalf("%+v, %v", job, err)
			}
			before, err := client.Content(ctx, done)
			if err != nil {
				t.Fatal(err)
			}
			running, waiting := submit(ctx, t, client, fixtures.long), submit(ctx, t, client, fixtures.tiny)
			eventually(t, "the long job is under way", func() bool {
				job, err := client.Job(ctx, running)
				if err != nil {
					t.Fatal(err)
				}
				if job.Ended() { // the machine stalled, so the job ended too early
					running = submit(ctx, t, client, fixtures.long)
				}
				return !job.Ended() && job.Progress > 0
			})

			if code, err := end(server, ctx); err != nil || code != 0 {
				t.Fatalf("exit code %d, %v", code, err)
			}
			if left := processesOn(t, data); len(left) > 0 {
				t.Errorf("still running after the stop: %q", left)
			}
			if left, err := os.ReadDir(filepath.Join(data, "scratch")); err != nil || len(left) > 0 {
				t.Errorf("left in the scratch folder: %v, %v", left, err)
			}

			client = start(t, data, settings...).Client()
			after, err := client.Content(ctx, done)
			if err != nil || !bytes.Equal(after.Body, before.Body) || after.Header.Get("ETag") != before.Header.Get("ETag") {
				t.Errorf("the result is not the one from before the stop: %v", err)
			}
			for _, id := range []string{running, waiting} {
				if job, err := client.Await(bounded(t), id, nil); err != nil || job.Status != "completed" {
					t.Errorf("after the start: %+v (%+v), %v", job, job.Error, err)
				}
			}
		})
	}
}
