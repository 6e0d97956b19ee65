//go:build gpu

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/engine/engineserver/engineservertest"
	"cutroom/shared/testkit/servertest"
)

// This test runs the real engine server with a real pipeline class and tiny weights.
func TestEngineProgramEdits(t *testing.T) {
	url := engineservertest.StartProgram(t)
	ctx := steps(t)
	// On a CPU, even a tiny model is slow with large pictures.
	catalog := filepath.Join(t.TempDir(), "catalog.yaml")
	small := strings.ReplaceAll(string(defaultCatalog(t)), "1280x720", "128x72")
	if err := os.WriteFile(catalog, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	client := start(t, t.TempDir(), "CUTROOM_ENGINE="+url, "CUTROOM_CATALOG="+catalog).Client()
	job, err := client.Submit(ctx, "gen-2.5", servertest.Form{
		servertest.File("data", "clip.mp4", fixtures.tiny), servertest.Text("prompt", "a quiet winter evening"),
		servertest.Text("seed", "7")})
	if err != nil {
		t.Fatal(err)
	}
	if job, err = client.Await(bounded(t), job.ID, nil); err != nil || job.Status != "completed" {
		t.Fatalf("the job ended as %+v, %+v, %v", job, job.Error, err)
	}
	content, err := client.Content(ctx, job.ID)
	if err != nil {
		t.Fatal(err)
	}
	facts := probe(t, content.Body)
	if len(facts.Streams) != 2 || facts.Streams[0].CodecName != "h264" || facts.Streams[0].Width != 128 ||
		facts.Streams[0].Height != 72 {
		t.Errorf("the result is %+v", facts)
	}
}
