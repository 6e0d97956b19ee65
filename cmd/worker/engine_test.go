package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cutroom/shared/domain/job"
	"cutroom/shared/engine/engineserver"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
)

// engineServer is an engine server. A run's prompt determines how it behaves.
type engineServer struct {
	t *testing.T
	// started receives every run's prompt. left is closed when a run is cancelled.
	started chan string
	left    chan struct{}

	mu   sync.Mutex
	runs map[string]int
}

func newEngineServer(t *testing.T) (*engineServer, string) {
	e := &engineServer{t: t, started: make(chan string, 20), left: make(chan struct{}), runs: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /v1/runs", e.run)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return e, server.URL
}

func (e *engineServer) run(w http.ResponseWriter, r *http.Request) {
	say := func(line string) {
		_, _ = io.WriteString(w, line+"\n") // fails if the client has disconnected
		_ = http.NewResponseController(w).Flush()
	}
	var asked engineserver.Request
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		e.t.Error(err)
		return
	}
	e.mu.Lock()
	e.runs[asked.Prompt]++
	first := e.runs[asked.Prompt] == 1
	e.mu.Unlock()
	e.started <- asked.Prompt
	say(`{"progress":0.9,"stage":"denoise"}`)
	switch {
	case first && asked.Prompt == "crash":
		panic(http.ErrAbortHandler)
	case first && asked.Prompt == "garbage":
		say("Segmentation fault (core dumped)")
	case first && asked.Prompt == "wait":
		<-r.Context().Done()
		close(e.left)
	case asked.Prompt == "reject":
		say(`{"error":{"code":"invalid_input","message":"The video has no picture.","retryable":false}}`)
	default:
		video, err := os.ReadFile(asked.Data.Path)
		if err == nil {
			err = os.WriteFile(asked.Output, video, 0o600)
		}
		if err != nil {
			e.t.Error(err)
		}
		say(fmt.Sprintf(`{"result":{"bytes":%d,"stages":{"denoise":1.5}}}`, len(video)))
	}
}

func health(t *testing.T, address string) error {
	check := exec.CommandContext(t.Context(), program, "-health")
	check.Env = []string{"CUTROOM_ADDR=" + address}
	return check.Run()
}

// After any fault of the engine server, its jobs are in the right state, and the worker takes the next job.
func TestWorkerSurvivesEngineServerFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, url := newEngineServer(t)
	address, err := programtest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	if health(t, address) == nil {
		t.Error("a stopped worker is healthy")
	}
	running := w.start(t, t.TempDir(), "CUTROOM_ENGINE="+url, "CUTROOM_ADDR="+address, "CUTROOM_METRICS_KEY=operator")
	prompts := []string{"crash", "garbage", "reject", "fine"}
	id := func(i int) string { return fmt.Sprintf("job_01K00000000000000000ENGN%02d", i) }
	for i, prompt := range prompts {
		w.submit(t, id(i), prompt)
	}
	for i, want := range []struct {
		status job.Status
		runs   int
	}{{job.Completed, 2}, {job.Completed, 2}, {job.Failed, 1}, {job.Completed, 1}} {
		j := w.await(t, id(i), "ended", func(j job.Job) bool { return j.Status.Terminal() })
		if j.Status != want.status || j.Runs != want.runs {
			t.Errorf("%s: %s after %d runs, want %s after %d: %+v", prompts[i], j.Status, j.Runs, want.status, want.runs,
				j.Failure)
		}
		if j.Failure != nil && *j.Failure != (job.Failure{Code: job.InvalidInput, Message: "The video has no picture."}) {
			t.Errorf("the job failed with %+v", j.Failure)
		}
	}
	if running.address(t) != address {
		t.Errorf("its health address is %s", running.address(t))
	}
	if err := health(t, address); err != nil {
		t.Errorf("its health: %v", err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer operator")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`cutroom_worker_runs_total{code="engine_error",lane="video",model="gen-2.1",outcome="repeated"} 2`,
		`cutroom_worker_runs_total{code="invalid_input",lane="video",model="gen-2.1",outcome="failed"} 1`,
		`cutroom_worker_runs_total{code="",lane="video",model="gen-2.1",outcome="completed"} 3`,
		`cutroom_worker_queue_wait_seconds_count{lane="video"} 4`,
		`cutroom_worker_stage_duration_seconds_sum{model="gen-2.1",stage="engine.denoise"} 4.5`,
		`cutroom_worker_slots{lane="video"} 1`,
	} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("its metrics have no %s", line)
		}
	}
}

// agent simulates the ECS agent's endpoint for task protection.
type agent struct {
	mu        sync.Mutex
	protected []bool
}

func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct{ ProtectionEnabled bool }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	a.protected = append(a.protected, asked.ProtectionEnabled)
	a.mu.Unlock()
	fmt.Fprintf(w, `{"protection":{"ProtectionEnabled":%v}}`, asked.ProtectionEnabled)
}

func (a *agent) isProtected() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.protected) > 0 && a.protected[len(a.protected)-1]
}

// A worker receives SIGTERM when its spot instance is reclaimed or a deployment replaces it. It closes the connection
// to the engine and immediately hands back the running job and the prefetched one. Neither loses an attempt.
func TestInterruptedWorkerReturnsItsJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	engine, url := newEngineServer(t)
	task := &agent{}
	agentServer := httptest.NewServer(task)
	t.Cleanup(agentServer.Close)
	scratch := t.TempDir()
	leaving := w.start(t, scratch, "CUTROOM_ENGINE="+url, "ECS_AGENT_URI="+agentServer.URL)
	const first, second = "job_01K00000000000000000WRKERB", "job_01K00000000000000000WRKERC"
	w.submit(t, first, "wait")
	await.Receive(t, "engine.started", engine.started)
	if !task.isProtected() {
		t.Error("the task is not protected from scale-in while it has a job")
	}
	w.submit(t, second, "fine")
	awaitPath(t, filepath.Join(scratch, "*", second+"-*", "data"))
	if err := leaving.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	await.Receive(t, "engine.left", engine.left)
	if err := leaving.Wait(); err != nil {
		t.Errorf("the worker exited with %v", err)
	}
	for id, status := range map[string]job.Status{first: job.Processing, second: job.Pending} {
		if j, err := w.jobs.Get(t.Context(), id); err != nil || j.Runs != 0 || j.Status != status {
			t.Errorf("the returned job %s is %s after %d runs, %v", id, j.Status, j.Runs, err)
		}
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("the scratch folder contains %v, %v", left, err)
	}
	w.start(t, t.TempDir(), "CUTROOM_ENGINE="+url)
	for _, id := range []string{first, second} {
		if j := w.await(t, id, "completed", func(j job.Job) bool { return j.Status.Terminal() }); j.Status != job.Completed ||
			j.Runs != 1 {
			t.Errorf("%s is %s after %d runs: %+v", id, j.Status, j.Runs, j.Failure)
		}
	}
	// Both workers have signed with the same identity, and only its certificates were published.
	signers, err := w.signers.Certificates(t.Context())
	if err != nil || len(signers) != 1 || !strings.Contains(signers[0], "BEGIN CERTIFICATE") ||
		strings.Contains(signers[0], "KEY") {
		t.Errorf("a verifier finds %d identities, %v", len(signers), err)
	}
}

func awaitPath(t *testing.T, pattern string) {
	t.Helper()
	await.Until(t, "something is at "+pattern, func() bool {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		return len(found) > 0
	})
}
