package comfyui_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/engine/comfyui"
	"cutroom/shared/engine/comfyui/comfyuitest"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/testkit/programtest"
)

func on(call string, do http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method+" "+r.URL.Path != call && !strings.HasPrefix(r.Method+" "+r.URL.Path, call+"/") {
			return false
		}
		do(w, r)
		return true
	}
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func crashes(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func hangs(_ http.ResponseWriter, r *http.Request) {
	// A handler detects a disconnect only after it has read the body.
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestServerFaultsGiveClearErrors(t *testing.T) {
	const senseless, middle, refused = "The engine returned an invalid response.",
		"The engine stopped during the edit.", "The engine rejected the edit."
	huge := strings.Repeat(" ", 33<<20)
	for _, c := range []struct {
		name, call string
		does       http.HandlerFunc
		message    string
		retryable  bool
	}{
		{"it rejects an upload as too large", "POST /upload/image", says(413, ""), "The input is too large for the engine.", false},
		{"it stores an upload elsewhere", "POST /upload/image", says(200, `{"name":"../x","subfolder":"","type":"input"}`), senseless, true},
		{"it crashes during an upload", "POST /upload/image", crashes, middle, true},
		{"it hangs during an upload", "POST /upload/image", hangs, "The engine stopped responding.", true},
		{"it redirects", "POST /upload/image", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, refused, false},
		{"it reports an invalid workflow", "POST /prompt", says(400, `{"error":{"type":"prompt_no_outputs"},"node_errors":[]}`), refused, false},
		{"it has lost the uploaded file", "POST /prompt", says(400, `{"error":{"type":"x"},"node_errors":
			{"1":{"class_type":"LoadImage","errors":[{"type":"custom_validation_failed","extra_info":{"input_name":"image"}}]}}}`), refused, true},
		{"it is broken", "POST /prompt", says(500, "oops"), refused, true},
		{"it is overloaded", "POST /prompt", says(429, ""), refused, true},
		{"it crashes when it accepts the run", "POST /prompt", crashes, middle, true},
		{"it accepts a run without an id", "POST /prompt", says(200, "{}"), senseless, true},
		{"it accepts a run with HTML", "POST /prompt", says(200, "<html>"), senseless, true},
		{"it accepts a run with a huge response", "POST /prompt", says(200, huge), senseless, true},
		{"it forgets the run", "POST /prompt", says(200, `{"prompt_id":"another"}`), middle, true},
		{"its record is invalid", "GET /history", says(200, `[]`), senseless, true},
		{"its record is huge", "GET /history", says(200, huge), senseless, true},
		{"its record is hidden", "GET /history", says(403, ""), refused, false},
		{"its run failed", "GET /history", record(`"outputs":{},"status":{"status_str":"error","messages":[["execution_error",
			{"node_type":"KSampler","exception_type":"RuntimeError","exception_message":"a quiet evening"}]]}`), "The engine failed.", true},
		{"its memory was too small", "GET /history", record(`"outputs":{},"status":{"status_str":"error","messages":[["execution_error",
			{"exception_type":"torch.OutOfMemoryError"}]]}`), "The engine ran out of memory.", true},
		{"its main memory was too small", "GET /history", record(`"outputs":{},"status":{"status_str":"error","messages":[["execution_error",
			{"node_type":"EmptyImage","exception_type":"RuntimeError","exception_message":"[enforce fail at alloc_cpu.cpp:127] err == 0. ` +
			`DefaultCPUAllocator: can't allocate memory: you tried to allocate 4398046511104 bytes. Error code 12 (Cannot allocate memory)\n"}]]}`),
			"The engine ran out of memory.", true},
		{"its exception contains the prompt", "GET /history", record(`"outputs":{},"status":{"status_str":"error","messages":[["execution_error",
			{"exception_type":"a quiet evening"}]]}`), "The engine failed.", true},
		{"another client interrupts the run", "GET /history", record(`"outputs":{},"status":{"status_str":"error","messages":[["execution_interrupted",{}]]}`),
			"The edit was interrupted on the engine.", true},
		{"it fails without a reason", "GET /history", record(`"status":{"status_str":"error","messages":[[],[1,2],["x"]]}`), "The engine failed.", true},
		{"its result is not a file", "GET /history", record(`"outputs":{"4":{"text":["done"],"images":[]}}`), "The engine returned no result.", true},
		{"its result is from another node", "GET /history", record(`"outputs":{"3":{"images":[{"filename":"a.mp4"}]}}`), "The engine returned no result.", true},
		{"its result is gone", "GET /view", says(404, ""), refused, false},
		{"its result is truncated", "GET /view", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("half"))
		}, middle, true},
		{"its result is empty", "GET /view", says(200, ""), "The engine returned no result.", true},
		{"its result is not a video", "GET /view", says(200, "<html>"), "The engine returned no result.", true},
		{"its result is a broken video", "GET /view", says(200, "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42"), "The engine returned no result.", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := fakeServer(t)
			s.Break = on(c.call, c.does)
			configured := config(t, serve(t, s))
			configured.PollEvery = 10 * time.Millisecond
			if strings.Contains(c.name, "hangs") {
				configured.Silence = shortWait
			}
			kind := catalog.TextToVideo
			if c.call == "POST /upload/image" || strings.Contains(c.name, "uploaded") {
				kind = catalog.Image
			}
			_, err := newEngine(t, configured).Run(t.Context(), newSpec(t, kind), ignore)
			var failure *engine.Error
			if !errors.As(err, &failure) || failure.Code != job.EngineError || failure.Message != c.message ||
				failure.Retryable != c.retryable {
				t.Errorf("error %v, want %q, retryable %t", err, c.message, c.retryable)
			}
			if err != nil && strings.Contains(err.Error(), "quiet evening") {
				t.Errorf("the error %q contains the prompt", err)
			}
		})
	}
}

func record(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		says(200, `{"`+id+`":{`+content+`}}`)(w, r)
	}
}

// A restarted server has lost the run. The next run succeeds.
func TestRestartFailsRunImmediately(t *testing.T) {
	s := fakeServer(t)
	s.Hold = make(chan struct{})
	configured := config(t, serve(t, s))
	configured.PollEvery = 10 * time.Millisecond
	e := newEngine(t, configured)
	var once sync.Once
	_, err := e.Run(t.Context(), newSpec(t, catalog.TextToVideo), func(p engine.Progress) {
		if p.Stage == "generate" {
			once.Do(s.Restart)
		}
	})
	var failure *engine.Error
	if !errors.As(err, &failure) || !failure.Retryable {
		t.Errorf("error %v", err)
	}
	close(s.Hold)
	if _, err := e.Run(t.Context(), newSpec(t, catalog.TextToVideo), ignore); err != nil {
		t.Error(err)
	}
}

// The WebSocket of a run may be rejected, lost or flooded.
func TestRunIsPolledWithoutWebSocket(t *testing.T) {
	for name, does := range map[string]http.HandlerFunc{"refused": says(404, ""), "lost": crashes} {
		t.Run(name, func(t *testing.T) {
			s := fakeServer(t)
			s.Break = on("GET /ws", does)
			configured := config(t, serve(t, s))
			configured.PollEvery = 10 * time.Millisecond
			if _, err := newEngine(t, configured).Run(t.Context(), newSpec(t, catalog.TextToVideo), ignore); err != nil {
				t.Error(err)
			}
		})
	}
}

// The server gets no other run until the stalled workflow has ended.
func TestStalledWorkflowIsInterrupted(t *testing.T) {
	s := fakeServer(t)
	s.Hold = make(chan struct{})
	configured := config(t, serve(t, s))
	configured.PollEvery, configured.Stall = 10*time.Millisecond, shortWait
	e := newEngine(t, configured)
	_, err := e.Run(t.Context(), newSpec(t, catalog.TextToVideo), ignore)
	var failure *engine.Error
	if !errors.As(err, &failure) || !failure.Retryable || !slices.Contains(s.Calls(), "POST /interrupt") {
		t.Errorf("error %v after %v", err, s.Calls())
	}
	if err := e.Health(t.Context()); err != nil {
		t.Errorf("after the interruption the engine accepts no other runs: %v", err)
	}
}

// A run in progress is interrupted, and its history is deleted.
func TestCancellationRemovesRuns(t *testing.T) {
	s := fakeServer(t)
	s.Hold = make(chan struct{})
	configured := config(t, serve(t, s))
	configured.PollEvery = 10 * time.Millisecond
	e := newEngine(t, configured)
	first, second := make(chan error), make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{}, 100)
	go func() {
		_, err := e.Run(ctx, newSpec(t, catalog.TextToVideo), func(p engine.Progress) {
			if p.Stage == "generate" {
				started <- struct{}{}
			}
		})
		first <- err
	}()
	<-started
	waiting, stop := context.WithCancel(t.Context())
	go func() {
		_, err := e.Run(waiting, newSpec(t, catalog.TextToVideo), func(p engine.Progress) {
			if p.Stage == "wait" {
				stop()
			}
		})
		second <- err
	}()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("the second run: %v", err)
	}
	if called := s.Calls(); slices.Contains(called, "POST /interrupt") {
		t.Error("the first run was interrupted instead of the second one")
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first run: %v", err)
	}
	if called := s.Calls(); !slices.Contains(called, "POST /interrupt") || !slices.Contains(called, "POST /history") {
		t.Errorf("called %v", called)
	}
}

func TestRunWaitsForStartingServer(t *testing.T) {
	address, err := programtest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s := fakeServer(t)
	up := serve(t, s)
	if _, err := newEngine(t, config(t, "http://"+address, up)).Run(t.Context(), newSpec(t, catalog.TextToVideo), ignore); err != nil {
		t.Errorf("one server is running: %v", err)
	}
	brief := config(t, "http://"+address)
	brief.Starting = shortWait
	e := newEngine(t, brief)
	var failure *engine.Error
	if _, err := e.Run(t.Context(), newSpec(t, catalog.TextToVideo), ignore); !errors.As(err, &failure) || !failure.Retryable ||
		failure.Message != "The engine cannot be reached." {
		t.Errorf("no server is running: %v", err)
	}
	if e.Health(t.Context()) == nil {
		t.Error("the engine is healthy without a server")
	}
	done := make(chan error, 1)
	go func() {
		_, err := newEngine(t, config(t, "http://"+address)).Run(t.Context(), newSpec(t, catalog.TextToVideo), ignore)
		done <- err
	}()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	late := &httptest.Server{Listener: listener, Config: &http.Server{Handler: s}} //nolint:gosec // a test server
	late.Start()
	defer late.Close()
	if err := <-done; err != nil {
		t.Errorf("the server has started: %v", err)
	}
}

func TestRunGoesToLeastBusyServer(t *testing.T) {
	busy, idle := fakeServer(t), fakeServer(t)
	busy.Break = on("GET /prompt", says(200, `{"exec_info":{"queue_remaining":3}}`))
	e := newEngine(t, config(t, serve(t, busy), serve(t, idle)))
	if _, err := e.Run(t.Context(), newSpec(t, catalog.TextToVideo), ignore); err != nil {
		t.Error(err)
	}
	if slices.Contains(busy.Calls(), "POST /prompt") {
		t.Error("the run went to the busy server")
	}
}

// The missing requirements are logged by name, and the run goes to another server.
func TestMissingRequirementsAreReported(t *testing.T) {
	complete, poor := fakeServer(t), fakeServer(t)
	delete(poor.Classes, "ImageAddNoise")
	poor.Classes["SaveVideo"] = []byte(`{"input":{"required":{"video":["VIDEO"],"filename_prefix":["STRING",{}],
		"format":["COMBO",{"options":["webm"]}],"codec":[["h264"],{}],"quality":["INT",{}]}}}`)
	poor.Classes["ImageScale"] = []byte(`{"input":{"required":{"image":["IMAGE"]}},"output":["IMAGE"]}`)
	e := newEngine(t, config(t, serve(t, complete), serve(t, poor), "http://127.0.0.1:1"))
	found := e.Inspect(t.Context())
	if len(found) != 3 || found[0].Err != nil || len(found[0].Lacks) != 0 || found[2].Err == nil {
		t.Fatalf("found %+v", found)
	}
	want := []string{
		`"mp4" for "format" of node 8 (SaveVideo)`, `a value for the input "quality" of node 8 (SaveVideo)`,
		`the input "height" of node 6 (ImageScale)`, `the input "width" of node 6 (ImageScale)`,
		`the node class "ImageAddNoise"`,
	}
	if got := found[1].Lacks["edit"]; !slices.Equal(got, want) {
		t.Errorf("the server lacks %q, want %q", got, want)
	}
	if _, err := e.Run(t.Context(), newSpec(t, catalog.TextToVideo), ignore); err != nil || len(poor.Calls()) == 0 ||
		slices.Contains(poor.Calls(), "POST /prompt") {
		t.Errorf("error %v, calls to the incomplete server %v", err, poor.Calls())
	}
	alone := newEngine(t, config(t, serve(t, poor)))
	var failure *engine.Error
	if _, err := alone.Run(t.Context(), newSpec(t, catalog.TextToVideo), ignore); !errors.As(err, &failure) || failure.Retryable ||
		!strings.Contains(err.Error(), `the node class "ImageAddNoise"`) {
		t.Errorf("error %v", err)
	}
}

func TestUnsupportedOptionsAreRejected(t *testing.T) {
	s := fakeServer(t)
	e := newEngine(t, config(t, serve(t, s)))
	long := newSpec(t, catalog.TextToVideo)
	long.Duration = time.Minute
	pictured := newSpec(t, catalog.TextToVideo)
	pictured.Reference = &engine.Input{}
	unknown := newSpec(t, catalog.TextToVideo)
	unknown.Model = "gen-9"
	for message, spec := range map[string]engine.Spec{
		"This model edits clips of at most 10.0 seconds.": long, "This model does not support a reference image.": pictured,
		"The engine has no workflow for this model.": unknown,
	} {
		var failure *engine.Error
		if _, err := e.Run(t.Context(), spec, ignore); !errors.As(err, &failure) || failure.Message != message || failure.Retryable {
			t.Errorf("error %v, want %q", err, message)
		}
	}
	if called := s.Calls(); len(called) > 0 {
		t.Errorf("called %v", called)
	}
}

func TestEditValuesAreSentToConfiguredInputs(t *testing.T) {
	var sent []byte
	s := fakeServer(t)
	s.Break = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method+" "+r.URL.Path == "POST /prompt" {
			sent = comfyuitest.Peek(r)
		}
		if got := r.Header.Get("Authorization"); got != "Bearer secret" {
			t.Errorf("%s has the key %q", r.URL.Path, got)
		}
		return false
	}
	configured := config(t, serve(t, s))
	configured.Key = "secret"
	spec := newSpec(t, catalog.Edit)
	spec.Seed = 4294967295
	if _, err := newEngine(t, configured).Run(t.Context(), spec, ignore); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"value":"a quiet evening"`, `"seed":4294967295`, `"width":160`, `"height":96`, `"fps":10`, `-data.mp4 [temp]"`,
		`"filename_prefix":"cutroom/`,
	} {
		if !strings.Contains(string(sent), want) {
			t.Errorf("%s is missing in %s", want, sent)
		}
	}
	for _, without := range []string{"LoadImage", "image2"} {
		if strings.Contains(string(sent), without) {
			t.Errorf("without a reference image %s was sent: %s", without, sent)
		}
	}
}

func TestInterpolatingWorkflowsMakeFewerFrames(t *testing.T) {
	var workflow, upload []byte
	s := fakeServer(t)
	s.Break = func(_ http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/prompt":
			if r.Method == http.MethodPost {
				workflow = comfyuitest.Peek(r)
			}
		case "/upload/image":
			upload = comfyuitest.Peek(r)
		}
		return false
	}
	configured := config(t, serve(t, s))
	for _, m := range configured.Models {
		m.Workflow.Interpolate = 2
	}
	e := newEngine(t, configured)
	text := newSpec(t, catalog.TextToVideo)
	text.Duration = 2 * time.Second
	if _, err := e.Run(t.Context(), text, ignore); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"batch_size":10`, `"fps":10`} {
		if !bytes.Contains(workflow, []byte(want)) {
			t.Errorf("%s is missing in %s", want, workflow)
		}
	}
	clip := newSpec(t, catalog.Edit)
	clip.Duration = 2 * time.Second
	if _, err := e.Run(t.Context(), clip, ignore); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "upload.mp4")
	if err := os.WriteFile(path, upload[bytes.Index(upload, []byte("ftyp"))-4:], 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := configured.Runner.(*ffmpeg.Tools).ProbeVideo(t.Context(), path, "video/mp4"); err != nil || info.FrameRate != 5 {
		t.Errorf("the uploaded clip is %+v, %v; want 5 frames per second", info, err)
	}
	long := newSpec(t, catalog.TextToVideo)
	long.Duration = 21 * time.Second
	if _, err := e.Run(t.Context(), long, ignore); err == nil || err.Error() != "invalid_input: This model edits clips of at most 20.0 seconds." {
		t.Errorf("a clip of 21 seconds gives %v", err)
	}
}

func TestInvalidConfigurationsAreRejected(t *testing.T) {
	for _, c := range []struct{ workflow, want string }{
		{"", "cannot read"},
		{"[]", "not a workflow in API format"},
		{`{"nodes":[],"links":[]}`, `export it with "Export (API)"`},
		{"{}", "has no nodes"},
		{`{"1":{"inputs":{}}}`, "no class_type"},
		{`{"1":{"class_type":"A","inputs":{"x":["2",0]}}}`, `linked to node "2"`},
		{`{"1":{"class_type":"A"}}`, `has no node "`},
	} {
		configured := config(t, "http://a")
		configured.Folder = t.TempDir()
		for _, m := range configured.Models {
			path := filepath.Join(configured.Folder, m.Workflow.File)
			if err := os.WriteFile(path, []byte(c.workflow), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.workflow == "" {
				os.Remove(path)
			}
		}
		if _, err := comfyui.New(configured); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), `model "`) {
			t.Errorf("%s: %v, want %q", c.workflow, err, c.want)
		}
	}
	for _, servers := range [][]string{
		nil, {""}, {"127.0.0.1:8188"}, {"ftp://a"}, {"http://a?b"}, {"http://u:p@a"}, {"http://a", "http://a/"},
	} {
		if _, err := comfyui.New(config(t, servers...)); err == nil {
			t.Errorf("%q are accepted as servers", servers)
		}
	}
	none := config(t, "http://a")
	none.Models = none.Models[:0]
	if _, err := comfyui.New(none); err == nil || !strings.Contains(err.Error(), "no model in the catalog") {
		t.Errorf("error %v", err)
	}
}
