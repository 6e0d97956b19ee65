package engineservertest

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/engine/engineserver/livewire"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
)

// StartProgram creates tiny random models, starts the real engine server with them until the test
// ends, and returns its URL. It needs the packages that scripts/install-gpu.sh installs.
func StartProgram(t *testing.T) (url string) {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(strings.TrimSpace(string(module)))
	python := filepath.Join(root, ".tools", "gpu", "bin", "python")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), await.MaxTest)
	defer cancel()
	weights := t.TempDir()
	making := exec.CommandContext(ctx, python, "-m", "tests.models.tiny", weights)
	making.Dir = filepath.Join(root, "gpu")
	if out, err := making.CombinedOutput(); err != nil {
		t.Fatalf("make tiny models: %v\n%s", err, out)
	}
	address, err := programtest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}

	var log strings.Builder
	server := exec.Command(python, "-m", "cutroom_engine")
	server.Dir = filepath.Join(root, "gpu")
	server.Env = append(os.Environ(), "CUTROOM_ENGINE_ADDR="+address, "CUTROOM_ENGINE_DEVICE=cpu",
		"CUTROOM_ENGINE_MODELS="+filepath.Join(weights, "models.yaml"))
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Wait() // the log shows how it ended
	}()
	t.Cleanup(func() {
		_ = server.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("the engine server's log:\n%s", log.String())
		}
	})
	url = "http://" + address
	for !healthy(ctx, t, url) {
		select {
		case <-ended:
			t.Fatalf("the engine server ended:\n%s", log.String())
		case <-ctx.Done():
			t.Fatal("the engine server does not start")
		case <-time.After(100 * time.Millisecond):
		}
	}
	return url
}

func healthy(ctx context.Context, t *testing.T, url string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func AwaitLive(t *testing.T, url, model string) {
	t.Helper()
	ctx := await.Context(t)
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+livewire.Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var reported livewire.Catalogue
		err = json.NewDecoder(response.Body).Decode(&reported)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if reported.Models[model].Ready {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the engine server does not edit %s live: %+v", model, reported)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
