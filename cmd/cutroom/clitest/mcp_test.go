package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/servertest"
)

// agent is a session between the official client and a server that the client started.
type agent struct {
	t       *testing.T
	session *mcp.ClientSession
	process *exec.Cmd
	stderr  *programtest.Output

	mu       sync.Mutex
	progress []*mcp.ProgressNotificationParams
}

func (s shell) agent(args ...string) *agent {
	s.t.Helper()
	a := &agent{t: s.t, process: s.command(append([]string{"mcp"}, args...)), stderr: &programtest.Output{}}
	a.process.Stderr = a.stderr
	official := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.progress = append(a.progress, request.Params)
		},
	})
	session, err := official.Connect(bounded(s.t), &mcp.CommandTransport{Command: a.process}, nil)
	if err != nil {
		s.t.Fatalf("%v; it logged %s", err, a.stderr)
	}
	a.session = session
	s.t.Cleanup(func() { session.Close() })
	return a
}

func (a *agent) call(tool string, arguments map[string]any) *mcp.CallToolResult {
	a.t.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	params.SetProgressToken(tool)
	result, err := a.session.CallTool(bounded(a.t), params)
	if err != nil {
		a.t.Fatalf("%s: %v; it logged %s", tool, err, a.stderr)
	}
	return result
}

func (a *agent) works(tool string, arguments map[string]any) map[string]any {
	a.t.Helper()
	result := a.call(tool, arguments)
	answer, ok := result.StructuredContent.(map[string]any)
	if result.IsError || !ok {
		a.t.Fatalf("%s: %s", tool, said(result))
	}
	return answer
}

// rejects fails the test unless the call fails with an error that contains the words.
func (a *agent) rejects(tool string, arguments map[string]any, words string) {
	a.t.Helper()
	result := a.call(tool, arguments)
	if text := said(result); !result.IsError || !strings.Contains(text, words) {
		a.t.Errorf("%s %v: %q, which does not contain %q", tool, arguments, text, words)
	}
}

func said(result *mcp.CallToolResult) string {
	var texts []string
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func agents(t *testing.T, s shell) {
	s.save("look.png", picture(t))
	a := s.agent()
	var names []string
	for tool, err := range a.session.Tools(bounded(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
		if tool.Description == "" || tool.Annotations == nil || tool.OutputSchema == nil {
			t.Errorf("%s does not declare its effect", tool.Name)
		}
	}
	slices.Sort(names)
	if want := strings.Fields("cancel_job chat complete delete_job edit fetch generate get_job " +
		"list_jobs list_models look share"); !slices.Equal(
		names, want) {
		t.Errorf("the tools are %q", names)
	}

	job := a.works("edit", map[string]any{
		"input": "look.png", "reference": filepath.Join(s.folder, "look.png"), "prompt": "winter", "resolution": "480p",
		"seed": 7,
	})["job"].(map[string]any)
	done := a.works("get_job", map[string]any{"job_id": job["job_id"]})["job"].(map[string]any)
	if done["status"] != "completed" || done["model"] != "gen-image-2" || done["seed"] != 7.0 {
		t.Errorf("the job is %v", done)
	}
	a.mu.Lock()
	reported := slices.Clone(a.progress)
	a.mu.Unlock()
	if len(reported) == 0 || reported[0].ProgressToken != "edit" || reported[0].Message != "uploading" {
		t.Errorf("the upload reported %v", reported)
	}
	if kept := a.works("fetch", map[string]any{"job_id": job["job_id"], "path": "out.png"}); kept["mime_type"] !=
		"image/png" || kept["path"] != filepath.Join(s.folder, "out.png") {
		t.Errorf("the result is %v", kept)
	}
	result := s.read("out.png")
	if _, err := png.Decode(bytes.NewReader(result)); err != nil {
		t.Error(err)
	}
	shown := a.call("fetch", map[string]any{"job_id": job["job_id"], "show": true})
	if len(shown.Content) != 2 || !bytes.Equal(shown.Content[1].(*mcp.ImageContent).Data, result) {
		t.Errorf("the shown picture is %s", said(shown))
	}
	if !bytes.Equal(s.read(fmt.Sprint(job["job_id"], ".png")), result) {
		t.Error("two fetches differ")
	}
	if left, _ := filepath.Glob(filepath.Join(s.folder, ".cutroom-*")); left != nil {
		t.Errorf("the leftovers are %v", left)
	}
	agentOnJobs(t, a, fmt.Sprint(job["job_id"]))
	agentOnOutcomes(t, a, fmt.Sprint(job["job_id"]), result)
	agentOnModels(t, a)
	if strings.Contains(a.stderr.String(), servertest.Key) {
		t.Error("the log has the key")
	}
}

func agentOnJobs(t *testing.T, a *agent, done string) {
	made := a.works("generate", map[string]any{"prompt": "a storm at sea", "orientation": "portrait"})
	id := made["job"].(map[string]any)["job_id"]
	state := a.works("get_job", map[string]any{"job_id": id, "wait_seconds": 0})
	if state["job"].(map[string]any)["job_id"] != id {
		t.Errorf("the job is %v", state)
	}
	a.call("cancel_job", map[string]any{"job_id": id}) // the job may have ended
	listed, _ := json.Marshal(a.works("list_jobs", map[string]any{"limit": 100}))
	for _, id := range []any{id, done} {
		if !strings.Contains(string(listed), fmt.Sprint(id)) {
			t.Errorf("%v is not listed", id)
		}
	}
	a.rejects("list_jobs", map[string]any{"status": "lost"}, "status")
	a.rejects("get_job", map[string]any{"job_id": "job_none"}, "list_jobs lists")
	a.rejects("edit", map[string]any{"input": "look.png"}, "a prompt, a reference picture")
	a.rejects("edit", map[string]any{"input": "look.png", "prompt": "winter", "model": "none"}, "list_models")
	a.rejects("edit", map[string]any{"input": "look.png", "prompt": "winter", "seed": -1}, "seed")
	a.rejects("edit", map[string]any{"input": "file_none", "prompt": "winter"}, "")
	a.rejects("fetch", map[string]any{"job_id": id, "path": "late.mp4"}, "get_job")
}

func agentOnOutcomes(t *testing.T, a *agent, id string, result []byte) {
	for _, arguments := range []map[string]any{{"job_id": id}, {"job_id": id, "of": "input"}} {
		shown := a.call("look", arguments)
		if len(shown.Content) != 2 || !bytes.HasPrefix(shown.Content[1].(*mcp.ImageContent).Data, []byte("\xff\xd8\xff")) {
			t.Errorf("look %v: %s", arguments, said(shown))
		}
	}
	a.rejects("look", map[string]any{}, "either job_id or file_id")
	a.rejects("look", map[string]any{"job_id": id, "file_id": "file_none"}, "either job_id or file_id")
	a.rejects("look", map[string]any{"job_id": id, "of": "mask"}, "of")
	a.rejects("look", map[string]any{"file_id": "file_none"}, "File not found")
	shared := a.works("share", map[string]any{"job_id": id, "expires_in": 60})
	response, err := http.Get(fmt.Sprint(shared["url"]))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(body, result) {
		t.Errorf("the link leads to %d, %d bytes, %v", response.StatusCode, len(body), err)
	}
	a.rejects("share", map[string]any{"job_id": id, "expires_in": 0.5}, "expires_in")
	a.rejects("share", map[string]any{"job_id": "job_none"}, "list_jobs")
	if gone := a.works("delete_job", map[string]any{"job_id": id}); gone["deleted"] != true {
		t.Errorf("the deletion returned %v", gone)
	}
	a.rejects("delete_job", map[string]any{"job_id": id}, "list_jobs")
	a.rejects("look", map[string]any{"job_id": id}, "list_jobs")
}

func agentOnModels(t *testing.T, a *agent) {
	models, _ := json.Marshal(a.works("list_models", nil))
	for _, name := range []string{"gen-2.5", "cutroom-echo"} {
		if !strings.Contains(string(models), name) {
			t.Errorf("the models are %s", models)
		}
	}
	question := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "hello there"}}}
	if answer := a.works("chat", question); !strings.Contains(answer["text"].(string), "“hello there”") ||
		answer["usage"].(map[string]any)["total_tokens"] == 0.0 {
		t.Errorf("the model replied %v", answer)
	}
	if answer := a.works("complete", map[string]any{"prompt": "Once upon", "max_tokens": 8}); answer["text"] == "" {
		t.Errorf("the model continued with %v", answer)
	}
	a.rejects("chat", map[string]any{"messages": []any{}}, "messages")
	question["model"] = "none"
	a.rejects("chat", question, "none")
}

func agentsFolder(t *testing.T, s shell) {
	s.save("secret.png", picture(t))
	s.save("in/look.png", picture(t))
	s.save("in/disguised.png", []byte("API_KEY=very-secret"))
	s.save("in/notes.txt", []byte("mine"))
	inside := filepath.Join(s.folder, "in")
	for from, to := range map[string]string{"out.png": "../secret.png", "here.png": "look.png", "up": ".."} {
		if err := os.Symlink(to, filepath.Join(inside, from)); err != nil {
			t.Fatal(err)
		}
	}
	a := s.agent("--folder", "in")
	edit := func(input string) map[string]any { return map[string]any{"input": input, "prompt": "winter"} }
	for path, words := range map[string]string{
		"../secret.png": "outside", filepath.Join(s.folder, "secret.png"): "outside", "a/../../secret.png": "outside",
		"/etc/passwd": "outside", "": "not a file",
		"out.png": "symbolic link", "here.png": "symbolic link", "up/secret.png": "symbolic link",
		"disguised.png": "not a video or picture", "notes.txt": "not a video or picture", "none.png": "no such file",
		".": "not a file",
	} {
		a.rejects("edit", edit(path), words)
	}
	reference := edit("look.png")
	reference["reference"] = "../secret.png"
	a.rejects("edit", reference, "outside")

	job := a.works("edit", map[string]any{"input": filepath.Join(inside, "look.png"), "prompt": "winter",
		"resolution": "480p"})
	id := job["job"].(map[string]any)["job_id"]
	a.works("get_job", map[string]any{"job_id": id})
	for path, words := range map[string]string{
		"../made.png": "outside", "up/made.png": "symbolic link", "out.png": "symbolic link",
		filepath.Join(s.folder, "made.png"): "outside",
		"made.mp4":                          "ends with .png", "Makefile": "ends with .png", "look.png": "exists already",
		"none/made.png": "no such file",
	} {
		a.rejects("fetch", map[string]any{"job_id": id, "path": path}, words)
	}
	if !bytes.Equal(s.read("secret.png"), picture(t)) || !bytes.Equal(s.read("in/look.png"), picture(t)) {
		t.Error("a file was replaced")
	}
	a.works("fetch", map[string]any{"job_id": id, "path": "look.png", "overwrite": true})
	if bytes.Equal(s.read("in/look.png"), picture(t)) {
		t.Error("the file was not replaced despite overwrite")
	}
	if left, _ := filepath.Glob(filepath.Join(inside, ".cutroom-*")); left != nil {
		t.Errorf("the leftovers are %v", left)
	}
}

func TestAgentErrorsHaveAdviceAndNoKey(t *testing.T) {
	t.Parallel()
	key := servertest.Key
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/content"):
			_, _ = w.Write([]byte("#!/bin/sh\nrm -rf /\n"))
		default:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"detail": "The key %s is not valid."}`, r.Header.Get("x-api-key"))
		}
	}))
	defer server.Close()
	s := at(t, server.URL, server.URL)
	a := s.agent()
	rejected := a.call("list_jobs", nil)
	whole, _ := json.Marshal(rejected)
	if text := said(rejected); !rejected.IsError || strings.Contains(string(whole), key) ||
		!strings.Contains(text, "[key]") || !strings.Contains(text, "cutroom login") {
		t.Errorf("an invalid key: %s", whole)
	}
	a.rejects("fetch", map[string]any{"job_id": "job_1", "path": "made.png"}, "neither a video nor a picture")
	a.rejects("fetch", map[string]any{"job_id": "../job", "path": ""}, "is not a job id")
	if found, _ := os.ReadDir(s.folder); len(found) != 0 {
		t.Errorf("the folder has %v", found)
	}

	nowhere := httptest.NewServer(nil)
	nowhere.Close()
	at(t, nowhere.URL, nowhere.URL).agent().rejects("list_models", nil, "is it running")
	newShell(t, "CUTROOM_URL="+nowhere.URL).agent().rejects("list_models", nil, "CUTROOM_API_KEY")
	if got := s.run("mcp", "--folder", "none"); got.code != 2 || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("a missing folder: %+v", got)
	}
}

func TestMCPServerEndsWithItsClient(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	s := at(t, server.URL, server.URL)
	for name, end := range map[string]func(*exec.Cmd, io.Closer) error{
		"its client hangs up": func(_ *exec.Cmd, stdin io.Closer) error { return stdin.Close() },
		"it is stopped":       func(process *exec.Cmd, _ io.Closer) error { return process.Process.Signal(os.Interrupt) },
	} {
		// The official client waits for its calls before it disconnects, but others might not.
		process := s.command([]string{"mcp"})
		stdin, err := process.StdinPipe()
		if err == nil {
			err = process.Start()
		}
		if err == nil {
			_, err = io.WriteString(stdin, waitingCall)
		}
		if err != nil {
			t.Fatal(err)
		}
		await.Receive(t, "asked", asked)
		if err := end(process, stdin); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := process.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const waitingCall = `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}
{"jsonrpc": "2.0", "method": "notifications/initialized"}
{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "get_job", "arguments": {"job_id": "job_1"}}}
`
