package main_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver/engineservertest"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview"
	"cutroom/shared/testkit/servertest"
)

// newPreview makes the preview engine.
func newPreview(t *testing.T) engine.Engine {
	t.Helper()
	tools, err := ffmpeg.Find(t.Context(), catalog.Limits{VideoDuration: time.Minute, VideoWidth: 4096, VideoHeight: 4096,
		ImagePixels: 50_000_000})
	if err != nil {
		t.Fatal(err)
	}
	return preview.New(tools)
}

// TestEngineServer tests an engine server beside the program from end to end: HTTP in, a
// worker, another program's edit, a video out.
func TestEngineServer(t *testing.T) {
	server := httptest.NewServer(engineservertest.Handler(newPreview(t)))
	defer server.Close()
	ctx := bounded(t)
	client := start(t, t.TempDir(), "CUTROOM_ENGINE="+server.URL).Client()
	job, err := client.Submit(ctx, "gen-2.5", servertest.Form{servertest.File("data", "clip.mp4", fixtures.tiny),
		servertest.Text("prompt", "winter")})
	if err != nil {
		t.Fatal(err)
	}
	if job, err = client.Await(ctx, job.ID, nil); err != nil {
		t.Fatal(err)
	}
	if job.Status != "completed" {
		t.Fatalf("the job ended as %+v, %+v", job, job.Error)
	}
	content, err := client.Content(ctx, job.ID)
	if err != nil {
		t.Fatal(err)
	}
	if facts := probe(t, content.Body); len(facts.Streams) != 2 || facts.Streams[0].Width != 64 ||
		facts.Streams[0].Height != 36 {
		t.Errorf("the result is %+v", facts)
	}
	form := servertest.Form{servertest.File("data", "picture.png", fixtures.picture), servertest.Text("prompt", "winter")}
	body, length, contentType := form.Encode()
	image, err := client.Call(ctx, "POST", "/v1/generate/gen-image-2", body, length, "Content-Type", contentType)
	if err != nil || image.Status != 200 || image.Header.Get("Content-Type") != "image/png" {
		t.Errorf("the image was answered by %d %v, %v", image.Status, image.Header, err)
	}

	// Without its engine server the service still serves.
	server.Close()
	if health, err := client.Get(ctx, "/healthz"); err != nil || health.Status != 200 {
		t.Errorf("without an engine server the health is %d, %v", health.Status, err)
	}
}

// together is an engine whose first two runs wait for each other before they edit.
type together struct {
	engine.Engine
	arrived *atomic.Int32
	both    chan struct{}
}

func (e together) Run(
	ctx context.Context, spec engine.Spec, progress func(engine.Progress),
) (engine.Outcome, error) {
	if e.arrived.Add(1) == 2 {
		close(e.both)
	}
	select {
	case <-e.both:
	case <-ctx.Done():
		return engine.Outcome{}, ctx.Err()
	}
	return e.Engine.Run(ctx, spec, progress)
}

// TestEngineServers has two engine servers, as on a machine with two GPUs: each has a job
// at the same time, and the second continues without the first.
func TestEngineServers(t *testing.T) {
	edits := newPreview(t)
	both := together{edits, &atomic.Int32{}, make(chan struct{})}
	var servers [2]*httptest.Server
	for i := range servers {
		first, then := engineservertest.Handler(both), engineservertest.Handler(edits)
		var once atomic.Bool
		servers[i] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/runs" && once.CompareAndSwap(false, true) {
				first.ServeHTTP(w, r)
				return
			}
			then.ServeHTTP(w, r)
		}))
		t.Cleanup(servers[i].Close) // after the program and its runs have ended
	}
	ctx := bounded(t)
	client := start(t, t.TempDir(), "CUTROOM_ENGINE="+servers[0].URL+","+servers[1].URL).Client()
	ends := func(id string) {
		t.Helper()
		if job, err := client.Await(ctx, id, nil); err != nil || job.Status != "completed" {
			t.Fatalf("the job ended as %+v, %v", job, err)
		}
	}
	one, two := submit(ctx, t, client, fixtures.tiny), submit(ctx, t, client, fixtures.tiny)
	ends(one)
	ends(two)
	servers[0].Close()
	ends(submit(ctx, t, client, fixtures.tiny))
}
