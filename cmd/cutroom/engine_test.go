package main_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"cutroom/shared/ffmpeg"
	"cutroom/shared/model"
	"cutroom/shared/preview"
	"cutroom/shared/remote/remotetest"
	"cutroom/shared/servertest"
)

// TestEngineServer goes the whole path with an engine server beside the program:
// HTTP in, a worker, another program's edit, a video out.
func TestEngineServer(t *testing.T) {
	tools, err := ffmpeg.Find(t.Context(), model.Limits{VideoDuration: time.Minute, VideoWidth: 4096, VideoHeight: 4096, ImagePixels: 50_000_000})
	if err != nil {
		t.Fatal(err)
	}
	engine := httptest.NewServer(remotetest.Handler(preview.New(tools)))
	defer engine.Close()
	ctx := bounded(t)
	client := start(t, t.TempDir(), "CUTROOM_ENGINE="+engine.URL).Client()
	job, err := client.Submit(ctx, "gen-2.5", servertest.Form{servertest.File("data", "clip.mp4", fixtures.tiny), servertest.Text("prompt", "winter")})
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
	if facts := probe(t, content.Body); len(facts.Streams) != 2 || facts.Streams[0].Width != 1280 || facts.Streams[0].Height != 720 {
		t.Errorf("the result is %+v", facts)
	}
	form := servertest.Form{servertest.File("data", "picture.png", fixtures.picture), servertest.Text("prompt", "winter")}
	body, length, contentType := form.Encode()
	image, err := client.Call(ctx, "POST", "/v1/generate/gen-image-2", body, length, "Content-Type", contentType)
	if err != nil || image.Status != 200 || image.Header.Get("Content-Type") != "image/png" {
		t.Errorf("the image was answered by %d %v, %v", image.Status, image.Header, err)
	}

	// Without its server the service stands.
	engine.Close()
	if health, err := client.Get(ctx, "/healthz"); err != nil || health.Status != 200 {
		t.Errorf("without an engine server the health is %d, %v", health.Status, err)
	}
}
