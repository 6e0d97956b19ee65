package main_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver/engineservertest"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview"
	"cutroom/shared/testkit/c2patest"
	"cutroom/shared/testkit/servertest"
)

func newPreview(t *testing.T) engine.Engine {
	t.Helper()
	tools, err := ffmpeg.Find(t.Context(), catalog.Limits{VideoDuration: time.Minute, VideoWidth: 4096, VideoHeight: 4096,
		ImagePixels: 50_000_000})
	if err != nil {
		t.Fatal(err)
	}
	return preview.New(tools)
}

func TestEngineServerEdits(t *testing.T) {
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
	// Results are labeled as made by a model, and signed with the server's generated identity.
	path := filepath.Join(t.TempDir(), "result.mp4")
	if err := os.WriteFile(path, content.Body, 0o600); err != nil {
		t.Fatal(err)
	}
	report := c2patest.Read(t, path, "video/mp4", filepath.Join(data, "c2pa.pem"))
	if job.Result == nil {
		t.Fatal("the job's record lacks its result's facts")
	}
	signed := job.Result.Credentials
	if report.State != "Trusted" || signed == nil || signed.SourceType != "compositeWithTrainedAlgorithmicMedia" ||
		signed.SignedBy != "Cutroom" || signed.SignedAt == "" {
		t.Errorf("its credentials are %s, and the job says %+v", report.State, signed)
	}
	verified, err := client.Get(ctx, "/v1/jobs/"+job.ID+"/credentials")
	if err != nil || verified.Status != 200 || !bytes.Contains(verified.Body, []byte(`"state":"valid","own":true`)) {
		t.Errorf("its verification returned %d %s, %v", verified.Status, verified.Body, err)
	}
	if kept, err := os.Stat(filepath.Join(data, "c2pa.pem")); err != nil || kept.Mode().Perm() != 0o600 {
		t.Errorf("the key is kept as %v, %v", kept, err)
	}
	form := servertest.Form{servertest.File("data", "picture.png", fixtures.picture), servertest.Text("prompt", "winter")}
	body, length, contentType := form.Encode()
	image, err := client.Call(ctx, "POST", "/v1/generate/gen-image-2", body, length, "Content-Type", contentType)
	if err != nil || image.Status != 200 || image.Header.Get("Content-Type") != "image/png" {
		t.Errorf("the image edit returned %d %v, %v", image.Status, image.Header, err)
	}

	// The service keeps running without its engine server.
	server.Close()
	if health, err := client.Get(ctx, "/healthz"); err != nil || health.Status != 200 {
		t.Errorf("without an engine server the health is %d, %v", health.Status, err)
	}
}

func TestDoctorListsMissingWeights(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"ok","missing":["/models/a/config.json","/models/b/*.safetensors"],"fetch":"prepare it"}`)
	}))
	defer server.Close()
	ended, err := program.Run(bounded(t), []string{"CUTROOM_DATA=" + t.TempDir(), "CUTROOM_ENGINE=" + server.URL}, "doctor")
	if err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{"fail  engine", "lacks files:\n", "   /models/a/config.json\n", "Fetch them: prepare it"} {
		if !strings.Contains(ended.Stdout, wanted) {
			t.Errorf("%q is missing in\n%s", wanted, ended.Stdout)
		}
	}
}
