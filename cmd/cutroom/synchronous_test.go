package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/testkit/patience"
	"cutroom/shared/testkit/servertest"
)

// A call that waits for its edit, against a server whose data folder is named
// from where it was started, as the default one is.
func TestSynchronousCalls(t *testing.T) {
	t.Parallel()
	ctx := steps(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	data, err := filepath.Rel(here, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := start(t, data, "CUTROOM_CATALOG="+save(t, defaultCatalog(t)))
	client := server.Client()
	call := func(ctx context.Context, model string, parts ...servertest.Part) (servertest.Answer, error) {
		body, length, contentType := servertest.Form(parts).Encode()
		return client.Call(ctx, http.MethodPost, "/v1/generate/"+model, body, length, "Content-Type", contentType)
	}

	edited, err := call(ctx, "gen-image-latest", servertest.File("data", "a.png", fixtures.picture),
		servertest.Text("prompt", "golden hour"))
	if err != nil || edited.Status != http.StatusOK || edited.Header.Get("Content-Type") != "image/png" {
		t.Fatalf("%d %.200s, %v", edited.Status, edited.Body, err)
	}
	if _, err := png.Decode(bytes.NewReader(edited.Body)); err != nil {
		t.Error(err)
	}
	broken, err := call(ctx, "gen-image-2", servertest.File("data", "a.png", fixtures.picture[:len(fixtures.picture)/2]),
		servertest.Text("prompt", "golden hour"))
	if err != nil || broken.Status != http.StatusUnprocessableEntity {
		t.Errorf("half a picture: %d %.200s, %v", broken.Status, broken.Body, err)
	}

	// A caller who hangs up ends the work: nothing of it runs any more.
	hangUp, cancel := context.WithCancel(ctx)
	defer cancel()
	left := make(chan error, 1)
	go func() {
		_, err := call(hangUp, "gen-clip", servertest.File("data", "clip.mp4", fixtures.endless),
			servertest.Text("prompt", "watercolor"))
		left <- err
	}()
	log := func(words ...string) func() bool {
		return func() bool {
			for line := range strings.Lines(server.Log()) {
				found := true
				for _, word := range words {
					found = found && strings.Contains(line, word)
				}
				if found {
					return true
				}
			}
			return false
		}
	}
	eventually(t, "the clip is being edited", log("run started", "model=gen-clip"))
	cancel()
	if err := patience.Receive(t, "left", left); err == nil {
		t.Error("the caller who hung up has an answer")
	}
	eventually(t, "its run is stopped", log("run lost", "model=gen-clip"))

	// A stop does not wait for callers whose work nobody does any more.
	stopped := make(chan servertest.Answer, 1)
	go func() {
		answer, err := call(ctx, "gen-clip", servertest.File("data", "clip.mp4", fixtures.endless),
			servertest.Text("prompt", "film noir"))
		if err != nil {
			t.Error(err)
		}
		stopped <- answer
	}()
	eventually(t, "another clip is being edited", func() bool {
		return strings.Count(server.Log(), "msg=\"run started\"") >= 4
	})
	if code, err := server.Stop(ctx); err != nil || code != 0 {
		t.Errorf("exit code %d, %v", code, err)
	}
	if answer := patience.Receive(t, "stopped", stopped); answer.Status != http.StatusServiceUnavailable {
		t.Errorf("the caller who waited has %d %s", answer.Status, answer.Body)
	}
}

// A prompt is expanded by the chat model that is set, and the job shows it.
func TestPromptsAreExpandedByAModel(t *testing.T) {
	t.Parallel()
	ctx := steps(t)
	const expanded = "A loose watercolor of a bay at dusk."
	asked := make(chan string, 1)
	writer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.Header.Get("Authorization")
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, expanded)
	}))
	defer writer.Close()
	client := start(t, t.TempDir(), "CUTROOM_ENHANCE_URL="+writer.URL, "CUTROOM_ENHANCE_MODEL=writer",
		"CUTROOM_ENHANCE_KEY=secret").Client()
	job, err := client.Submit(ctx, "gen-image-2", servertest.Form{
		servertest.File("data", "a.png", fixtures.picture), servertest.Text("prompt", "watercolor"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if job, err = client.Await(bounded(t), job.ID, nil); err != nil || job.Status != "completed" {
		t.Fatalf("%+v, %v", job, err)
	}
	answer, err := client.Get(ctx, "/v1/jobs/"+job.ID)
	var record struct {
		EnhancedPrompt string `json:"enhanced_prompt"`
	}
	if err != nil || json.Unmarshal(answer.Body, &record) != nil || record.EnhancedPrompt != expanded {
		t.Errorf("the record is %s, %v", answer.Body, err)
	}
	select {
	case got := <-asked:
		if got != "/v1/chat/completions Bearer secret" {
			t.Errorf("the model was asked by %q", got)
		}
	case <-time.After(patience.Max):
		t.Error("the model was not asked")
	}
}
