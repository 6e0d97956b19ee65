//go:build comfyui

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image/jpeg"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/engine/comfyui/comfyuitest"
	"cutroom/shared/testkit/servertest"
)

// This test uses the real ComfyUI with the bundled workflows and tiny checkpoints.
func TestProgramEditsWithComfyUI(t *testing.T) {
	comfyui := comfyuitest.StartProgram(t)
	client := start(t, t.TempDir(), "CUTROOM_ENGINE=comfyui:"+comfyui.URL, "CUTROOM_CATALOG="+smallWorkflows(t)).Client()

	t.Run("text to video", func(t *testing.T) {
		ran(t, client, "gen-pro-t2v", 96, servertest.Text("prompt", "a paper boat"))
	})
	t.Run("image to video", func(t *testing.T) {
		ran(t, client, "gen-pro-i2v", 96, servertest.File("data", "a.png", fixtures.picture))
		ran(t, client, "gen-pro-i2v", 96, servertest.Text("prompt", "the boat leaves"),
			servertest.File("data", "a.png", fixtures.picture), servertest.File("last_image", "b.png", fixtures.picture))
	})
	t.Run("edit a clip", func(t *testing.T) {
		ran(t, client, "gen-clip", 96, servertest.Text("prompt", "a watercolor painting"),
			servertest.File("data", "clip.mp4", fixtures.tiny), servertest.File("reference_image", "a.png", fixtures.picture))
	})
	t.Run("edit an image", func(t *testing.T) {
		ctx := steps(t)
		call := func() (servertest.Answer, error) {
			form := servertest.Form{servertest.Text("prompt", "make it snow"), servertest.File("data", "a.png", fixtures.picture)}
			body, length, contentType := form.Encode()
			return client.Call(ctx, http.MethodPost, "/v1/generate/gen-image-2", body, length, "Content-Type", contentType)
		}
		answer, err := call()
		// On a busy machine, the edit may take longer than a request can wait.
		for err == nil && answer.Status == http.StatusGatewayTimeout && ctx.Err() == nil {
			answer, err = call()
		}
		if err != nil || answer.Status != http.StatusOK {
			t.Fatalf("%d %.300s, %v", answer.Status, answer.Body, err)
		}
		if made, err := png.DecodeConfig(bytes.NewReader(answer.Body)); err != nil || made.Width != 96 {
			t.Errorf("the result is %+v, %v", made, err)
		}
	})
	t.Run("a cancelled job", func(t *testing.T) {
		ctx := steps(t)
		id := sampling(ctx, t, client)
		answer, err := client.Call(ctx, http.MethodDelete, "/v1/jobs/"+id, nil, 0)
		if err != nil || answer.Status != http.StatusOK {
			t.Fatalf("%d %s, %v", answer.Status, answer.Body, err)
		}
		eventually(t, "the program's queue is free", func() bool { return remaining(t, comfyui.URL) == 0 })
	})
	t.Run("a program that is killed", func(t *testing.T) {
		ctx := steps(t)
		id := sampling(ctx, t, client)
		comfyui.Kill()
		comfyui.Start(t)
		if job, err := client.Await(bounded(t), id, nil); err != nil || job.Status != "completed" {
			t.Errorf("the job ended as %+v, %+v, %v", job, job.Error, err)
		}
	})
	t.Run("too little memory", func(t *testing.T) {
		ctx := steps(t)
		job, err := client.Submit(ctx, "gen-huge", servertest.Form{servertest.Text("prompt", "a paper boat")})
		if err == nil {
			job, err = client.Await(bounded(t), job.ID, nil)
		}
		if err != nil || job.Error == nil || job.Error.Message != "The engine ran out of memory." {
			t.Errorf("the job ended as %+v, %+v, %v", job, job.Error, err)
		}
	})
}

// smallWorkflows returns a catalog that contains the bundled workflows with small results, a
// workflow with many steps, and a workflow that needs far too much memory.
func smallWorkflows(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("../../gpu/comfyui")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "catalog.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	small := strings.NewReplacer("832x480", "96x72", "1280x720", "96x72", "848x480", "96x72", "duration: 5s\n", "duration: 1s\n").
		Replace(string(content)) + `
  - id: $family-huge
    kind: text-to-video
    form: text-to-video
    sizes: {480p: 96x72}
    fps: 16
    duration: 1s
    comfyui: {workflow: huge.json, prompt: 4.value, fps: 2.fps, result: 3}
  - id: $family-long
    kind: text-to-video
    form: text-to-video
    sizes: {480p: 96x72}
    fps: 16
    duration: 1s
    comfyui: {workflow: long.json, prompt: 9.text, seed: 12.noise_seed, width: 11.width, height: 11.height, frames: 11.length, result: 16}
`
	stepped := func(workflow, steps, instead string) string {
		content, err := os.ReadFile(filepath.Join(folder, workflow))
		if err != nil || !strings.Contains(string(content), steps) {
			t.Fatalf("%s has no %s, %v", workflow, steps, err)
		}
		return strings.Replace(string(content), steps, instead, 1)
	}
	// Use few steps, because a request for an image edit waits at most a minute.
	quick := stepped("edit-image.json", `"steps": 4`, `"steps": 1`)
	long := strings.Replace(stepped("text-to-video.json", `"steps": 4`, `"steps": 200`), `"end_at_step": 2`, `"end_at_step": 200`, 1)
	// No test machine has 4 TiB of memory.
	huge := `{
		"1": {"class_type": "EmptyImage", "inputs": {"width": 16384, "height": 16384, "batch_size": 4096, "color": 7}},
		"2": {"class_type": "CreateVideo", "inputs": {"images": ["1", 0], "fps": 16}},
		"3": {"class_type": "SaveVideo", "inputs": {"video": ["2", 0], "filename_prefix": "x", "format": "mp4", "codec": "h264"}},
		"4": {"class_type": "PrimitiveString", "inputs": {"value": ""}}
	}`
	for name, content := range map[string]string{"catalog.yaml": small, "huge.json": huge, "long.json": long, "edit-image.json": quick} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func ran(t *testing.T, client *servertest.Client, model string, width int, form ...servertest.Part) {
	t.Helper()
	ctx := steps(t)
	job, err := client.Submit(ctx, model, form)
	if err != nil {
		t.Fatal(err)
	}
	progress, previews := map[float64]bool{}, map[string]bool{}
	last := 0.0
	job, err = client.Await(bounded(t), job.ID, func(now servertest.Job) {
		if now.Progress < last {
			t.Errorf("progress %g after %g", now.Progress, last)
		}
		last = now.Progress
		progress[last] = true
		shown, err := client.Get(ctx, "/v1/jobs/"+now.ID+"/preview")
		if err != nil || shown.Status != http.StatusOK {
			return
		}
		if _, err := jpeg.Decode(bytes.NewReader(shown.Body)); err != nil {
			t.Error(err)
		}
		previews[string(shown.Body)] = true
	})
	if err != nil || job.Status != "completed" {
		t.Fatalf("the job ended as %+v, %+v, %v", job, job.Error, err)
	}
	t.Logf("%d values of progress, %d previews", len(progress), len(previews))
	// A tiny model may be too fast for a preview: see sampling.
	if len(progress) < 3 {
		t.Errorf("progress %v", progress)
	}
	content, err := client.Content(ctx, job.ID)
	if err != nil {
		t.Fatal(err)
	}
	if facts := probe(t, content.Body); len(facts.Streams) == 0 || facts.Streams[0].Width != width {
		t.Errorf("the result is %+v", facts)
	}
}

// sampling submits a job and returns its id once the sampler has sent a preview.
func sampling(ctx context.Context, t *testing.T, client *servertest.Client) string {
	t.Helper()
	job, err := client.Submit(ctx, "gen-long", servertest.Form{servertest.Text("prompt", "a paper boat")})
	if err != nil {
		t.Fatal(err)
	}
	for {
		shown, err := client.Get(ctx, "/v1/jobs/"+job.ID+"/preview")
		if err != nil {
			t.Fatal(err)
		}
		if shown.Status == http.StatusOK {
			return job.ID
		}
		if now, err := client.Job(ctx, job.ID); err != nil || now.Ended() {
			t.Fatalf("the job ended as %+v, %v", now, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func remaining(t *testing.T, url string) int {
	t.Helper()
	response, err := http.Get(url + "/prompt")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var queue struct {
		Info struct {
			Remaining int `json:"queue_remaining"`
		} `json:"exec_info"`
	}
	if err := json.NewDecoder(response.Body).Decode(&queue); err != nil {
		t.Fatal(err)
	}
	return queue.Info.Remaining
}
