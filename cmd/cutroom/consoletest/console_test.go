package consoletest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/c2patest"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/servertest"
)

var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(programtest.Main(m, "cutroom/cmd/cutroom", &program))
}

type outcome struct{ Flow, Failure string }

// No page calls another service, violates its content security policy, or has a serious
// accessibility problem for keyboard or screen reader users.
func TestConsoleFlowsWork(t *testing.T) {
	ctx := await.TestContext(t)
	server, err := servertest.Program(program).Start(ctx, t.TempDir(), "CUTROOM_CATALOG="+catalog(t), "CUTROOM_WORKERS=2",
		"CUTROOM_LOG_LEVEL=warn")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	chromium, err := programtest.Browser()
	if err != nil {
		t.Fatal(err)
	}
	for _, flow := range play(ctx, t, map[string]string{
		"URL": server.URL(), "INFERENCE_URL": server.InferenceURL(), "KEY": servertest.Key, "CHROMIUM": chromium,
		"SHOTS": t.ArtifactDir(), "TAKE_SHOTS": flag.Lookup("test.artifacts").Value.String(), "SIGNED": pictures(t),
		"MEDIA": absolute(t, "../../../testdata"), "PACKAGES": absolute(t, "../../../.tools/console"),
	}) {
		t.Run(flow.Flow, func(t *testing.T) {
			if flow.Failure != "" {
				t.Error(flow.Failure)
			}
		})
	}
	if t.Failed() {
		t.Logf("the server's log:\n%s", server.Log())
	}
}

// pictures returns a folder with signed.png, signed by another service, and changed.png, a copy
// with one byte changed. It also contains photo.heic and take.mov, which the browser cannot show.
func pictures(t *testing.T) string {
	t.Helper()
	who, _ := c2patest.NewIdentity(t)
	path := c2patest.SignedPicture(t, who)
	folder := filepath.Dir(path)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)-20]++
	if err := os.WriteFile(filepath.Join(folder, "changed.png"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	for from, name := range map[string]string{
		mediatest.Image{Name: "photo.heic"}.Make(t):                                               "photo.heic",
		mediatest.Video{Name: "take.mov", Codec: "prores_ks", PixelFormat: "yuv422p10le"}.Make(t): "take.mov",
	} {
		if err := os.Rename(from, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func play(ctx context.Context, t *testing.T, variables map[string]string) []outcome {
	t.Helper()
	if _, err := os.Stat(filepath.Join(variables["PACKAGES"], "node_modules", "playwright-core")); err != nil {
		t.Fatal("playwright-core is missing: run scripts/install-test-tools.sh")
	}
	node := absolute(t, "../../../.tools/node/node_modules/.bin/node")
	if _, err := os.Stat(node); err != nil {
		node = "node" // there is no Node package for this system
	}
	command := exec.CommandContext(ctx, node, filepath.Join("testdata", "console.mjs"))
	command.Env = os.Environ()
	for name, value := range variables {
		command.Env = append(command.Env, name+"="+value)
	}
	// The browser is in the command's process group and is killed with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	command.Stderr = &stderr
	printed, err := command.Output()
	if err != nil {
		t.Errorf("the flows did not finish: %v\n%s", err, &stderr)
	}
	var outcomes []outcome
	for lines := bufio.NewScanner(bytes.NewReader(printed)); lines.Scan(); {
		var one outcome
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%v in %s", err, lines.Bytes())
		}
		outcomes = append(outcomes, one)
	}
	if len(outcomes) == 0 {
		t.Errorf("no flow was run\n%s", &stderr)
	}
	return outcomes
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// catalog writes a copy of the built-in catalog with small results, prices for two models, and a
// chat model that never ends. Edits with gen-2.1 take long enough to be cancelled.
func catalog(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(absolute(t, "../../../shared/domain/catalog/catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct{ pattern, replacement string }{
		{`(720p|480p): \d+x\d+`, "${1}: 320x180"}, {`duration: 5s`, "duration: 1s"},
		{`720p: 320x180}(\s+fps: 20\s+title: "Edit a video, in a smaller size")`,
			"720p: 4096x2304}${1}"},
		{`(?m)^limits:`, "currency: EUR\nlimits:"},
		{`(title: "Edit a video, in a smaller size")`, "${1}\n    price: {per_second: 0.05}"},
		{`(title: Make a video from text)`, "${1}\n    price: {per_edit: 1.5}"},
	} {
		pattern := regexp.MustCompile(change.pattern)
		if !pattern.Match(source) {
			t.Fatalf("the catalog has no %s", change.pattern)
		}
		source = pattern.ReplaceAll(source, []byte(change.replacement))
	}
	endless := httptest.NewServer(http.HandlerFunc(talk))
	t.Cleanup(endless.Close)
	scribe := httptest.NewServer(http.HandlerFunc(write))
	t.Cleanup(scribe.Close)
	source = fmt.Appendf(source, `
  - id: endless
    routes: [chat]
    context_length: 32768
    max_output_length: 4096
    upstreams:
      - {url: "%s/v1"}
  - id: scribe
    price: {input: 2, output: 4, call: 0.25}
    routes: [chat]
    context_length: 32768
    max_output_length: 4096
    upstreams:
      - {url: "%s/v1"}
`, endless.URL, scribe.URL)
	path := filepath.Join(t.TempDir(), "catalog.yaml")
	if err := os.WriteFile(path, source, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// talk is a model server that sends a few words and then waits until the client disconnects.
func talk(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, word := range []string{"It", " never", " ends"} {
		fmt.Fprint(w, chunk(word))
	}
	_ = http.NewResponseController(w).Flush() // fails if the client has disconnected
	<-r.Context().Done()
}

func chunk(text string) string {
	encoded, _ := json.Marshal(text) // a string always encodes
	return `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,` +
		`"delta":{"content":` + string(encoded) + `},"finish_reason":null}]}` + "\n\n"
}

// write is a model server whose formatted reply tries to attack the page.
func write(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, part := range []string{
		"# Cuts\n\n1. a **ju", "mp** cut\n2. a match cut\n   - with _care_\n\n| film | frames |\n|---|---:|\n| any | 24 |\n\n",
		"```sh\nffmpeg -i a.mp4\n```\n\nSee [a page](https://example.com/), [not this](javascript:alert(1)) and `code`.\n\n",
		"<img src=x onerror=alert(1)> ![a picture](https://example.com/spy.png)\n\n<script>alert(1)</script>\n",
	} {
		fmt.Fprint(w, chunk(part))
	}
	fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],`+
		`"usage":{"prompt_tokens":3,"completion_tokens":40,"total_tokens":43}}`+"\n\ndata: [DONE]\n\n")
}
