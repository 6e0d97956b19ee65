package clitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cutroom/shared/testkit/await"
)

func serve(t *testing.T, routes map[string]http.HandlerFunc) shell {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, handler := range routes {
		mux.HandleFunc(pattern, handler)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return at(t, server.URL, server.URL)
}

func answer(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// Each type of error (docs/cli.md, "Exit codes") prints one line, both as text and as JSON.
func TestErrorsHaveExitCodesAndAdvice(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]http.HandlerFunc{
		"GET /v1/realtime/quota":   answer(429, `{"detail":"Too many requests."}`, "Retry-After", "120"),
		"POST /v1/client/tokens":   answer(403, `{"detail":"A client token cannot create another."}`),
		"GET /v1/files":            answer(401, `{"detail":"The API key is not valid."}`),
		"GET /v1/files/{id}":       answer(404, `{"detail":"File not found."}`),
		"GET /v1/jobs/{id}":        answer(200, `{"job_id":"job_1","status":"failed","error":{"code":"timeout","message":"It took too long."}}`),
		"GET /v1/jobs/{id}/events": answer(404, ""),
		"GET /v1/usage": answer(500, `{"error":{"message":"oh","type":"api_error","code":null}}`, "x-request-id",
			"req-7"),
		"POST /v1/models/resolve": answer(200, `{"model_id":"gen-2.5"}`),
		"POST /v1/jobs/gen-2.5": answer(422, `{"detail":[{"loc":["body","seed"],"msg":"Input should be less","type":"less_than_equal","input":"9","ctx":{}},`+
			`{"loc":["body","data"],"msg":"Value error, It is no video.","type":"value_error","input":null,"ctx":{}}]}`),
		"GET /openapi.json":          answer(200, "<html>another program</html>"),
		"POST /v1/chat/completions":  answer(502, `{"error":{"message":"The upstream left.","type":"api_error","code":"upstream_error"}}`),
		"DELETE /v1/files/file_gone": answer(204, ""),
	})
	s.save("clip.mp4", []byte("bytes"))
	if err := syscall.Mkfifo(filepath.Join(s.folder, "pipe.png"), 0o600); err != nil {
		t.Fatal(err)
	}
	nobody, keyless := s.with("CUTROOM_URL=http://127.0.0.1:1"), s.with("CUTROOM_API_KEY=")
	for name, c := range map[string]struct {
		shell shell
		args  []string
		code  int
		says  string
	}{
		"works":                     {s, []string{"files", "rm", "file_gone"}, 0, ""},
		"a server's bug":            {s, []string{"usage"}, 1, "req-7"},
		"another program":           {s, []string{"models"}, 1, "check the URL"},
		"a missing file":            {s, []string{"files", "put", "nothing.mp4"}, 1, ": the file or folder nothing.mp4 does not exist\n"},
		"an invalid form":           {s, []string{"edit", "clip.mp4", "-p", "x"}, 1, "seed: Input should be less; the input cannot be edited: It is no video.\n"},
		"a failed upstream":         {s, []string{"chat", "hi", "-m", "m"}, 1, "The upstream left"},
		"a pipe, not a file":        {s, []string{"inspect", "pipe.png"}, 2, "pipe.png is not a regular file"},
		"an unknown flag":           {s, []string{"edit", "clip.mp4", "--colour"}, 2, "cutroom edit --help"},
		"a missing argument":        {s, []string{"jobs", "show"}, 2, "cutroom jobs show --help"},
		"an invalid number":         {s, []string{"edit", "clip.mp4", "--seed", "-1"}, 2, "seed"},
		"an unknown profile":        {s, []string{"quota", "--profile", "nowhere"}, 2, "cutroom login --profile nowhere"},
		"an empty message":          {s, []string{"chat"}, 2, "stdin"},
		"an invalid key":            {s, []string{"files"}, 3, "cutroom login"},
		"a forbidden request":       {s, []string{"token"}, 3, "permanent key"},
		"no key":                    {keyless, []string{"quota"}, 3, "where \"cutroom dev\" was started"},
		"an unknown file":           {s, []string{"files", "get", "file_x"}, 4, "File not found"},
		"too many requests":         {s, []string{"quota"}, 5, "2m0s"},
		"a failed job":              {s, []string{"jobs", "watch", "job_1"}, 6, "It took too long"},
		"a stopped server":          {nobody, []string{"quota"}, 7, "cutroom dev"},
		"an invalid server URL":     {s.with("CUTROOM_URL=media"), []string{"quota"}, 2, "https://"},
		"an invalid URL and no key": {keyless.with("CUTROOM_URL=media"), []string{"quota"}, 2, "https://"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.shell.run(c.args...)
			if got.code != c.code || !strings.Contains(got.stderr, c.says) || got.stdout != "" {
				t.Errorf("%+v; want exit code %d, %q and nothing on stdout", got, c.code, c.says)
			}
			if c.code == 0 {
				return
			}
			if strings.Count(got.stderr, "\n") != 1 || !strings.HasPrefix(got.stderr, "cutroom: ") {
				t.Errorf("stderr is %q; want one line", got.stderr)
			}
			got = c.shell.run(append(c.args, "--json")...)
			var shown struct {
				Error struct {
					Message  string `json:"message"`
					ExitCode int    `json:"exit_code"`
				} `json:"error"`
			}
			if err := json.Unmarshal([]byte(got.stderr), &shown); err != nil || shown.Error.ExitCode != c.code ||
				got.code != c.code || shown.Error.Message == "" {
				t.Errorf("with --json: %+v, %v", got, err)
			}
		})
	}
}

func jobThatWaits(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "event: job\ndata: {\"job_id\":\"job_1\",\"status\":\"processing\",\"progress\":0.25}\n\n")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func TestInterruptKeepsTheJob(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]http.HandlerFunc{
		"POST /v1/models/resolve":   answer(200, `{"model_id":"gen-2.5"}`),
		"POST /v1/jobs/gen-2.5":     answer(200, `{"job_id":"job_1","status":"pending"}`),
		"GET /v1/jobs/job_1":        answer(200, `{"job_id":"job_1","status":"processing","progress":0.25}`),
		"GET /v1/jobs/job_1/events": jobThatWaits,
	})
	s.save("clip.mp4", []byte("bytes"))
	for name, args := range map[string][]string{"edit": {"edit", "clip.mp4", "-p", "noir"},
		"watch": {"jobs", "watch", "job_1"}} {
		opened := s.open(args...)
		opened.waitFor("25%", 1)
		opened.press("\x03")
		if code := opened.wait(); code != 130 {
			t.Errorf("%s: exit code %d", name, code)
		}
		for _, words := range []string{"cutroom jobs watch job_1", "cutroom jobs cancel job_1"} {
			if !strings.Contains(opened.screen.String(), words) {
				t.Errorf("%s does not show %q: %q", name, words, opened.screen)
			}
		}
	}
	piped := s.command([]string{"jobs", "watch", "job_1", "--json"})
	out, err := piped.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := piped.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(out, first); err != nil { // the first state was printed
		t.Fatal(err)
	}
	if err := piped.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out) // until the program ends
	_ = piped.Wait()                // ProcessState contains the exit status
	if code := piped.ProcessState.ExitCode(); code != 130 {
		t.Errorf("through pipes: exit code %d", code)
	}
}

// Ctrl-C stops the reply but does not end the chat.
func TestChatSendsEarlierTurns(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	s := serve(t, map[string]http.HandlerFunc{
		"GET /v1/models": answer(200, `{"data":[{"id":"writer","capabilities":["chat"]},{"id":"other","capabilities":["chat"]}]}`),
		"POST /v1/chat/completions": func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			asked <- string(body)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Well\\u001b[2J, then\"}}]}\n\n")
			if strings.Contains(string(body), "endless") && !strings.Contains(string(body), "again") {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"total_tokens\":12}}\n\ndata: [DONE]\n\n")
		},
	})
	opened := s.open("chat", "--system", "Be brief.")
	// The terminal turns on bracketed paste whenever it is ready for input.
	turns := 0
	say := func(keys string) {
		turns++
		opened.waitFor("\x1b[?2004h", turns)
		opened.press(keys)
	}
	say("endless\r")
	opened.waitFor("then", 1)
	opened.press("\x03")
	opened.waitFor("(stopped)", 1)
	say("again\r")
	opened.waitFor("(12 tokens)", 1)
	say("/model other\r")
	opened.waitFor("Chat with other", 1)
	say("/reset\r")
	opened.waitFor("Forgotten.", 1)
	say("anew\r")
	opened.waitFor("(12 tokens)", 2)
	say("\x04")
	if code := opened.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(opened.screen.String(), "\x1b[2J") {
		t.Error("a model's text controls the terminal")
	}
	for i, want := range [][]string{
		{`"model":"writer"`, "Be brief.", "endless"},
		{`"model":"writer"`, "Be brief.", "endless", `"role":"assistant"`, "again"},
		{`"model":"other"`, "Be brief.", "anew"},
	} {
		got := await.Receive(t, "asked", asked)
		for _, words := range want {
			if !strings.Contains(got, words) {
				t.Errorf("question %d does not hold %q: %s", i, words, got)
			}
		}
		if i == 2 && strings.Contains(got, "endless") {
			t.Errorf("a cleared turn is sent again: %s", got)
		}
	}
}

func TestLocalKeyIsSentOnlyToThisMachine(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]http.HandlerFunc{"GET /v1/realtime/quota": func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"limit":%d,"active":0,"remaining":0}`, len(r.Header.Get("x-api-key")))
	}})
	s.save("data/dev-key", []byte("ck_kept_by_dev\n"))
	s = s.with("CUTROOM_API_KEY=", "CUTROOM_DATA=data")
	if quota := s.documents("quota"); quota[0]["limit"] != float64(len("ck_kept_by_dev")) {
		t.Errorf("the server got a key of %v characters", quota[0]["limit"])
	}
	if got := s.with("CUTROOM_URL=http://media.example.com").run("quota"); got.code != 3 ||
		!strings.Contains(got.stderr, "there is no key") {
		t.Errorf("%+v", got)
	}
}
