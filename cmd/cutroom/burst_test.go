package main_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"cutroom/shared/testkit/servertest"
)

// TestBurst submits a dozen jobs at once: each is accepted or refused at once, and every
// accepted job completes.
func TestBurst(t *testing.T) {
	t.Parallel()
	const burst, limit = 12, 3
	data := t.TempDir()
	tiers := filepath.Join(t.TempDir(), "tiers.yaml")
	if err := os.WriteFile(tiers, []byte("default: {pending_jobs: 3}\ndev: {pending_jobs: 0}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := []string{"CUTROOM_WORKERS=2", "CUTROOM_TIERS=" + tiers, "CUTROOM_CATALOG=" + smallPictures(t)}
	server := start(t, data, settings...)
	limited := &servertest.Client{URL: server.URL(), Key: newKey(t, data, settings, "--account", "acme")}

	for _, c := range []struct {
		name   string
		client *servertest.Client
		// all says that none may be refused. Otherwise some must be, because the limit of
		// the account's tier is below the burst.
		all bool
	}{
		{"without a limit", server.Client(), true},
		{"above the limit of the account's tier", limited, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := steps(t)
			var all sync.WaitGroup
			var mu sync.Mutex
			accepted, refused := map[string]bool{}, 0
			for range burst {
				all.Go(func() {
					// Images are the quickest work.
					job, err := c.client.Submit(ctx, "gen-image-2", servertest.Form{
						servertest.File("data", "picture.png", fixtures.picture), servertest.Text("prompt", "pixel art")})
					mu.Lock()
					defer mu.Unlock()
					var refusal *servertest.Refusal
					switch {
					case err == nil:
						accepted[job.ID] = true
					case errors.As(err, &refusal) && refusal.Status == 429:
						refused++
						if after, err := strconv.Atoi(refusal.Header.Get("Retry-After")); err != nil || after < 1 ||
							refusal.Detail() == "" {
							t.Errorf("a refusal that does not say when to retry: %v, Retry-After %q", refusal,
								refusal.Header.Get("Retry-After"))
						}
					default:
						t.Errorf("neither accepted nor refused: %v", err)
					}
				})
			}
			all.Wait()
			if len(accepted)+refused != burst || c.all && refused > 0 || !c.all && (refused == 0 || len(accepted) < limit) {
				t.Errorf("of %d at once %d were accepted and %d refused", burst, len(accepted), refused)
			}
			for id := range accepted {
				if job, err := c.client.Await(bounded(t), id, nil); err != nil || job.Status != "completed" {
					t.Errorf("%+v (%+v), %v", job, job.Error, err)
				}
			}
		})
	}
}
