package main_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver/engineservertest"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview"
	"cutroom/shared/testkit/c2patest"
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
	t.Parallel()
	server := httptest.NewServer(engineservertest.Handler(newPreview(t)))
	defer server.Close()
	ctx := steps(t)
	data := t.TempDir()
	client := start(t, data, "CUTROOM_ENGINE="+server.URL).Client()
	job, err := client.Submit(ctx, "gen-2.5", servertest.Form{servertest.File("data", "clip.mp4", fixtures.tiny),
		servertest.Text("prompt", "winter")})
	if err != nil {
		t.Fatal(err)
	}
	if job, err = client.Await(bounded(t), job.ID, nil); err != nil {
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
	// What models make says so, signed by the identity that the server has made for itself.
	path := filepath.Join(t.TempDir(), "result.mp4")
	if err := os.WriteFile(path, content.Body, 0o600); err != nil {
		t.Fatal(err)
	}
	report := c2patest.Read(t, path, "video/mp4", filepath.Join(data, "c2pa.pem"))
	if job.Result == nil {
		t.Fatal("the job tells nothing of its result")
	}
	signed := job.Result.Credentials
	if report.State != "Trusted" || signed == nil || signed.SourceType != "compositeWithTrainedAlgorithmicMedia" ||
		signed.SignedBy != "Cutroom" || signed.SignedAt == "" {
		t.Errorf("its credentials are %s, and the job says %+v", report.State, signed)
	}
	verified, err := client.Get(ctx, "/v1/jobs/"+job.ID+"/credentials")
	if err != nil || verified.Status != 200 || !bytes.Contains(verified.Body, []byte(`"state":"valid","own":true`)) {
		t.Errorf("the service says of it %d %s, %v", verified.Status, verified.Body, err)
	}
	if kept, err := os.Stat(filepath.Join(data, "c2pa.pem")); err != nil || kept.Mode().Perm() != 0o600 {
		t.Errorf("the key is kept as %v, %v", kept, err)
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

// slow is an engine that tells that an edit takes 400 s for each second of a clip.
type slow struct{ engine.Engine }

func (slow) Estimates(_ context.Context, asked []engine.Question) ([]*job.Estimate, error) {
	estimates := make([]*job.Estimate, len(asked))
	for i, question := range asked {
		estimates[i] = &job.Estimate{EditKind: question.EditKind, Slack: 1}
		for _, length := range question.Lengths {
			takes := 400 * max(length, 1)
			estimates[i].Points = append(estimates[i].Points, job.EstimatePoint{Length: length, Takes: takes})
		}
	}
	return estimates, nil
}

// TestClipsThatAreTooLongForTheEngineServer tests what an engine server tells of its edits
// from end to end: the worker asks it, and a POST is refused by what it said.
func TestClipsThatAreTooLongForTheEngineServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(engineservertest.Handler(slow{newPreview(t)}))
	defer server.Close()
	ctx := steps(t)
	client := start(t, t.TempDir(), "CUTROOM_ENGINE="+server.URL).Client()
	long, err := os.ReadFile(mediatest.Video{Seconds: 3, Width: 64, Height: 36}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	post := func() servertest.Answer {
		t.Helper()
		form := servertest.Form{servertest.File("data", "clip.mp4", long), servertest.Text("prompt", "winter")}
		body, length, contentType := form.Encode()
		answer, err := client.Call(ctx, "POST", "/v1/jobs/gen-2.5", body, length, "Content-Type", contentType)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for answer := post(); answer.Status != http.StatusUnprocessableEntity; answer = post() {
		if answer.Status != http.StatusOK || ctx.Err() != nil {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
		time.Sleep(100 * time.Millisecond) // the worker is about to ask the engine server
	}
	if answer := post(); !strings.Contains(string(answer.Body), "would be done in time has 1 s.") {
		t.Errorf("the refusal is %s", answer.Body)
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
	t.Parallel()
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
	ctx := steps(t)
	client := start(t, t.TempDir(), "CUTROOM_ENGINE="+servers[0].URL+","+servers[1].URL).Client()
	ends := func(id string) {
		t.Helper()
		if job, err := client.Await(bounded(t), id, nil); err != nil || job.Status != "completed" {
			t.Fatalf("the job ended as %+v, %v", job, err)
		}
	}
	one, two := submit(ctx, t, client, fixtures.tiny), submit(ctx, t, client, fixtures.tiny)
	ends(one)
	ends(two)
	servers[0].Close()
	ends(submit(ctx, t, client, fixtures.tiny))
}
