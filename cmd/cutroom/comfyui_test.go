package main_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/jpeg"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/engine/comfyui/comfyuitest"
	"cutroom/shared/testkit/servertest"
)

// The ComfyUI server's preview images become the job's preview, and the file that the workflow saves becomes the
// result.
func TestComfyUIServerEdits(t *testing.T) {
	t.Parallel()
	var shown bytes.Buffer
	if err := jpeg.Encode(&shown, image.NewGray(image.Rect(0, 0, 64, 36)), nil); err != nil {
		t.Fatal(err)
	}
	standIn := &comfyuitest.Server{
		Hold: make(chan struct{}), Preview: shown.Bytes(), Video: func(int64) []byte { return fixtures.tiny },
	}
	classes, err := os.ReadFile("../../shared/engine/comfyui/testdata/ready.json")
	if err == nil {
		err = json.Unmarshal(classes, &standIn.Classes)
	}
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(standIn)
	defer server.Close()
	catalog, err := filepath.Abs("../../gpu/comfyui/catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ctx := steps(t)
	client := start(t, t.TempDir(), "CUTROOM_ENGINE=comfyui:"+server.URL, "CUTROOM_CATALOG="+catalog).Client()
	job, err := client.Submit(ctx, "gen-pro-t2v", servertest.Form{servertest.Text("prompt", "a paper boat")})
	if err != nil {
		t.Fatal(err)
	}
	path := "/v1/jobs/" + job.ID + "/preview"
	preview, err := client.Get(ctx, path)
	for ; err == nil && preview.Status != 200; preview, err = client.Get(ctx, path) {
		if preview.Status != 404 || ctx.Err() != nil {
			t.Fatalf("%d %s", preview.Status, preview.Body)
		}
		time.Sleep(100 * time.Millisecond) // the worker will store the first preview soon
	}
	if err != nil || !bytes.Equal(preview.Body, shown.Bytes()) || preview.Header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("the preview is %d bytes, %v, %v", len(preview.Body), preview.Header, err)
	}
	close(standIn.Hold)
	if job, err = client.Await(bounded(t), job.ID, nil); err != nil || job.Status != "completed" {
		t.Fatalf("the job ended as %+v, %+v, %v", job, job.Error, err)
	}
	if content, err := client.Content(ctx, job.ID); err != nil || len(probe(t, content.Body).Streams) != 1 {
		t.Errorf("the result is %d bytes, %v", len(content.Body), err)
	}
	if preview, err = client.Get(ctx, path); err != nil || preview.Status != 404 {
		t.Errorf("the preview afterwards: %d, %v", preview.Status, err)
	}
}
