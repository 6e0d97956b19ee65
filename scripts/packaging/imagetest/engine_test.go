//go:build docker

package imagetest_test

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/testkit/servertest"
)

// The engine server's image runs real pipelines with tiny weights on the CPU. Its jobs come from a container of the
// one-machine server.
func TestEngineEdits(t *testing.T) {
	t.Parallel()
	// The image declares the weights folder, so its user may write to a new volume there.
	weights, scratch := volume(t), volume(t)
	gpu, err := filepath.Abs("../../../gpu")
	if err != nil {
		t.Fatal(err)
	}
	docker(t, "run", "--rm", "--label", label, "--network", "none", "--volume", weights+":/weights",
		"--volume", gpu+":/gpu:ro", "--workdir", "/gpu", "--entrypoint", "/opt/engine/bin/python", imageOf("cutroom-engine"),
		"-m", "tests.models.tiny", "/weights")

	network := docker(t, "network", "create", "--label", label, "cutroom-test-"+strings.ToLower(rand.Text()))
	t.Cleanup(func() {
		if _, err := tryDocker(context.WithoutCancel(t.Context()), "network", "rm", network); err != nil {
			t.Error(err)
		}
	})
	engine := start(t, imageOf("cutroom-engine"), append(environment([]string{
		"CUTROOM_ENGINE_DEVICE=cpu", "CUTROOM_ENGINE_MODELS=/weights/models.yaml", "CUTROOM_ENGINE_SCRATCH=/data/scratch",
	}), "--network", network, "--network-alias", "engine", "--publish", "127.0.0.1::8090",
		"--volume", scratch+":/data/scratch", "--volume", weights+":/weights"), nil)
	engine.ready(8090)
	saysWhatItIs(t, "cutroom-engine")

	// The pictures are small, because even a tiny model is slow with large ones.
	catalog := filepath.Join(t.TempDir(), "catalog.yaml")
	small := strings.ReplaceAll(string(read(t, "../../../shared/domain/catalog/catalog.yaml")), "1280x720", "128x72")
	if err := os.WriteFile(catalog, []byte(small), 0o644); err != nil { //nolint:gosec // the container's user reads it
		t.Fatal(err)
	}
	server := start(t, imageOf("cutroom"), append(environment([]string{
		"CUTROOM_ENGINE=http://engine:8090", "CUTROOM_CATALOG=/catalog.yaml",
	}), "--network", network, "--publish", "127.0.0.1::8080", "--volume", volume(t)+":/data",
		"--volume", scratch+":/data/scratch", "--volume", catalog+":/catalog.yaml:ro"), nil)
	client := &servertest.Client{URL: server.ready(8080)}
	client.Key = docker(t, "exec", server.id, "cutroom", "keys", "create", "--account", account)
	clip := read(t, mediatest.Video{Width: 128, Height: 72, Seconds: 0.5}.Make(t))
	submitted, err := client.Submit(t.Context(), "gen-2.5", servertest.Form{
		servertest.File("data", "clip.mp4", clip), servertest.Text("prompt", "a quiet winter evening"),
	})
	if err != nil {
		t.Fatal(err)
	}
	edited, err := client.Await(t.Context(), submitted.ID, nil)
	if err != nil || edited.Status != "completed" {
		t.Fatalf("the job ended as %+v, %+v, %v", edited, edited.Error, err)
	}
	content, err := client.Content(t.Context(), submitted.ID)
	if err != nil || string(content.Body[4:8]) != "ftyp" {
		t.Errorf("the result is not a video, of %d bytes, %v", len(content.Body), err)
	}
	if code := engine.stop(time.Minute); code != 0 && code != 143 {
		t.Errorf("after a stop signal the engine server exited with %d", code)
	}
}
