package client_test

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/client"
	"cutroom/shared/testkit/await"
)

type seen struct {
	method, path string
	header       http.Header
	body         string
}

type service struct {
	t       *testing.T
	mu      sync.Mutex
	answers []http.HandlerFunc
	seen    []seen
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	s.seen = append(s.seen, seen{r.Method, r.URL.RequestURI(), r.Header.Clone(), string(body)})
	answer := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	s.mu.Unlock()
	answer(w, r)
}

func (s *service) all() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *service) requests() []string {
	var lines []string
	for _, request := range s.all() {
		lines = append(lines, request.method+" "+request.path)
	}
	return lines
}

func status(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func breakOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = w.Write([]byte(`{"job_id":`))
	panic(http.ErrAbortHandler)
}

func switchProtocols(w http.ResponseWriter, _ *http.Request) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	_, _ = io.Copy(io.Discard, buffered)
}

func serve(t *testing.T, answers ...http.HandlerFunc) (*client.Client, *service) {
	t.Helper()
	s := &service{t: t, answers: answers}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return clientOf(t, server.URL), s
}

func clientOf(t *testing.T, url string) *client.Client {
	t.Helper()
	ids := 0
	c, err := client.New(client.Config{
		URL: url, InferenceURL: url + "/", Key: "ck_test_key", UserAgent: "cutroom/test", Backoff: time.Millisecond,
		NewID: func() string { ids++; return fmt.Sprintf("id-%d", ids) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	return await.Context(t)
}

func text(t *testing.T, name, content string) client.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := client.File(path)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// The contract has two error formats, and proxies send HTML pages.
func TestErrorResponsesAreParsed(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   client.Error
		says   string
	}{
		"a detail": {
			status(404, `{"detail":"Job not found."}`, "x-request-id", "req-1"),
			client.Error{Status: 404, Message: "Job not found.", RequestID: "req-1"}, "Job not found.",
		},
		"a validation error": {
			status(422, `{"detail":[{"loc":["body","seed"],"msg":"too small","type":"greater_than_equal","input":"-1",`+
				`"ctx":{}},{"loc":["body"],"msg":"Value error, bad","type":"value_error","input":null,"ctx":{}}]}`),
			client.Error{Status: 422}, "seed: too small; bad",
		},
		"a gateway error": {
			status(404,
				`{"error":{"message":"an unknown model","type":"invalid_request_error","param":"model","code":"model_not_found"}}`),
			client.Error{Status: 404, Message: "an unknown model", Type: "invalid_request_error", Code: "model_not_found"},
			"an unknown model",
		},
		"a proxy's error page":  {status(405, `<html>`), client.Error{Status: 405}, "status 405"},
		"a switch of protocols": {switchProtocols, client.Error{Status: 101}, "status 101"},
		"a long Retry-After": {
			status(429, `{"detail":"Too many."}`, "Retry-After", "3600"),
			client.Error{Status: 429, Message: "Too many.", RetryAfter: time.Hour}, "Too many.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c2, s := serve(t, c.answer)
			_, err := c2.Job(bounded(t), "job_1")
			var refusal *client.Error
			if !errors.As(err, &refusal) {
				t.Fatalf("%v is not an *Error", err)
			}
			if refusal.Status != c.want.Status || refusal.Message != c.want.Message || refusal.Code != c.want.Code ||
				refusal.Type != c.want.Type || refusal.RequestID != c.want.RequestID || refusal.RetryAfter != c.want.RetryAfter {
				t.Errorf("got %+v, want %+v", *refusal, c.want)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not contain %q", err, c.says)
			}
			if len(s.requests()) != 1 {
				t.Errorf("got %d requests", len(s.requests()))
			}
		})
	}
}

const job = `{"job_id":"job_1","status":"pending"}`

func TestOnlySafeCallsAreRetried(t *testing.T) {
	create := func(c *client.Client) error {
		data := text(t, "clip.mp4", "some bytes")
		_, err := c.CreateJob(bounded(t), client.Edit{Model: "gen-2.5", Data: &data,
			Fields: map[string]string{"prompt": "noir"}}, nil)
		return err
	}
	read := func(c *client.Client) error { _, err := c.Job(bounded(t), "job_1"); return err }
	chat := func(c *client.Client) error { _, err := c.Complete(bounded(t), client.Chat{}); return err }
	for name, c := range map[string]struct {
		call    func(*client.Client) error
		answers []http.HandlerFunc
		asked   int
		works   bool
	}{
		"a read on a broken connection": {read, []http.HandlerFunc{hangUp, status(200, job)}, 2, true},
		"a read from a busy server": {read, []http.HandlerFunc{status(503, ""), status(502, ""), status(200, job)},
			3, true},
		"a read over the rate": {read, []http.HandlerFunc{status(429, "", "Retry-After", "0"),
			status(200, job)}, 2, true},
		"a read that always fails":                 {read, []http.HandlerFunc{status(503, "")}, 4, false},
		"a job on a broken connection":             {create, []http.HandlerFunc{hangUp, status(200, job)}, 2, true},
		"a job with a truncated response":          {create, []http.HandlerFunc{breakOff, status(200, job)}, 2, true},
		"a job for a server that is shutting down": {create, []http.HandlerFunc{status(503, ""), status(200, job)}, 2, true},
		"a job with a running earlier attempt": {create, []http.HandlerFunc{hangUp, status(409, "", "Retry-After", "1"),
			status(200, job)}, 3, true},
		"a job with a used idempotency key": {create, []http.HandlerFunc{status(409, "")}, 1, false},
		"a rejected job":                    {create, []http.HandlerFunc{status(422, "")}, 1, false},
		"a job for a server with a bug":     {create, []http.HandlerFunc{status(500, "")}, 1, false},
		"a chat over the rate":              {chat, []http.HandlerFunc{status(429, ""), status(200, "{}")}, 2, true},
		"a chat on a broken connection":     {chat, []http.HandlerFunc{hangUp}, 1, false},
		"a chat with a truncated response":  {chat, []http.HandlerFunc{breakOff}, 1, false},
		"a chat with a broken upstream":     {chat, []http.HandlerFunc{status(502, "")}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			c2, s := serve(t, c.answers...)
			if err := c.call(c2); (err == nil) != c.works {
				t.Errorf("got error %v", err)
			}
			if len(s.all()) != c.asked {
				t.Fatalf("got %d requests, want %d", len(s.all()), c.asked)
			}
			first := s.all()[0]
			for _, again := range s.all()[1:] {
				if again.body != first.body || again.header.Get("Idempotency-Key") != first.header.Get("Idempotency-Key") {
					t.Errorf("a retry differs: %+v and %+v", first, again)
				}
			}
			if first.method == http.MethodPost && strings.HasPrefix(first.path, "/v1/jobs") &&
				first.header.Get("Idempotency-Key") == "" {
				t.Error("a creating request has no Idempotency-Key")
			}
		})
	}
}

func TestMissingServerFailsImmediately(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	var broken *client.ConnectionError
	if _, err := clientOf(t, server.URL).Job(bounded(t), "job_1"); !errors.As(err, &broken) || broken.URL != server.URL {
		t.Errorf("got %v", err)
	}
	if _, err := client.New(client.Config{URL: "media.example.com", InferenceURL: server.URL}); err == nil {
		t.Error("a URL without a scheme was accepted")
	}
}

func TestFormHasFieldsBeforeFiles(t *testing.T) {
	c, s := serve(t, status(200, job))
	data, reference := text(t, "clip.mp4", strings.Repeat("v", 100_000)), client.Source{Reference: "file_abc"}
	var last, all int64
	created, err := c.CreateJob(bounded(t), client.Edit{
		Model: "gen-2.5", Data: &data, Reference: &reference,
		Fields: map[string]string{"prompt": "noir, \"grain\"", "seed": "7"},
	}, func(done, total int64) { last, all = done, total })
	if err != nil || created.ID != "job_1" || created.Status != client.Pending {
		t.Fatalf("%+v, %v", created, err)
	}
	request, err := http.NewRequest(http.MethodPost, "/", strings.NewReader(s.all()[0].body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = s.all()[0].header
	if err := request.ParseMultipartForm(1 << 20); err != nil {
		t.Fatal(err)
	}
	form := request.MultipartForm
	if form.Value["prompt"][0] != "noir, \"grain\"" || form.Value["seed"][0] != "7" {
		t.Errorf("the fields are %v", form.Value)
	}
	if got := form.File["data"][0]; got.Size != 100_000 || got.Filename != "clip.mp4" {
		t.Errorf("the video is %+v", got)
	}
	if got := form.File["reference_image"][0]; got.Size != int64(len("file_abc")) {
		t.Errorf("the reference is %+v", got)
	}
	if last != all || all != int64(len(s.all()[0].body)) {
		t.Errorf("progress reported %d of %d bytes, want %d", last, all, len(s.all()[0].body))
	}
	if key := s.all()[0].header.Get("x-api-key"); key != "ck_test_key" {
		t.Errorf("the key is %q", key)
	}
}

// The key is not sent to the storage service. The job refers to the stored files.
func TestLargeInputsAreStoredFirst(t *testing.T) {
	var c *client.Client
	var s *service
	announced := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"id":"file_big","upload":{"method":"PUT","url":"http://%s/upload","headers":{"X-Amz-Signed":"yes"}}}`,
			r.Host)
	}
	c, s = serve(t, status(413, `{"detail":"too large"}`), announced, status(200, ""), status(200, `{"id":"file_big"}`),
		status(200, job))
	data := text(t, "clip.mp4", "some bytes")
	if _, err := c.CreateJob(bounded(t), client.Edit{Model: "gen-2.5", Data: &data}, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"POST /v1/jobs/gen-2.5", "POST /v1/files", "PUT /upload", "GET /v1/files/file_big",
		"POST /v1/jobs/gen-2.5"}
	if got := s.requests(); !slices.Equal(got, want) {
		t.Fatalf("the requests were %v, want %v", got, want)
	}
	if said := s.all()[1].body; !strings.Contains(said, `"md5":"`+fmt.Sprintf("%x", md5.Sum([]byte("some bytes")))) ||
		!strings.Contains(said, `"size_bytes":10`) {
		t.Errorf("the announcement is %s", said)
	}
	if put := s.all()[2]; put.body != "some bytes" || put.header.Get("x-amz-signed") != "yes" ||
		put.header.Get("x-api-key") != "" {
		t.Errorf("the upload is %+v", put)
	}
	if last := s.all()[4].body; !strings.Contains(last, "file_big") || strings.Contains(last, "some bytes") {
		t.Errorf("the job's form is %s", last)
	}
}

// A server must not be able to make this machine send requests other than uploads.
func TestHostileUploadsAreNotSent(t *testing.T) {
	for _, upload := range []string{
		`{"method":"DELETE","url":"%s"}`, `{"method":"PUT","url":"file:///etc/passwd"}`, `{"method":"PUT","url":"/upload"}`,
		`{"method":"PUT","url":"%s","headers":{"Authorization":"Bearer x"}}`, `{"method":"PUT","url":"%s","headers":{"Cookie":"a=b"}}`,
	} {
		c, s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"id":"file_big","upload":`+strings.ReplaceAll(upload, "%s", "http://"+r.Host+"/upload")+`}`)
		}, status(200, `{"id":"file_big"}`))
		_, err := c.PutLargeFile(bounded(t), text(t, "clip.mp4", "some bytes"), "", nil)
		if got := s.requests(); err == nil || !slices.Equal(got, []string{"POST /v1/files"}) {
			t.Errorf("%s: %v; the requests were %v", upload, err, got)
		}
	}
}

type endless struct{ cancel context.CancelFunc }

func (e endless) Read(p []byte) (int, error) {
	e.cancel()
	return len(p), nil
}

func (endless) Close() error { return nil }

func TestUploadOfLargeInputCanBeCancelled(t *testing.T) {
	c, s := serve(t, status(413, `{"detail":"too large"}`))
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	file, opened := text(t, "clip.mp4", "some bytes"), 0
	short := file.Open
	file.Open = func() (io.ReadCloser, error) {
		if opened++; opened > 1 {
			return endless{cancel}, nil
		}
		return short()
	}
	if _, err := c.PutFile(ctx, file, "", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if got := s.requests(); !slices.Equal(got, []string{"POST /v1/files"}) {
		t.Errorf("the requests were %v", got)
	}
}

// Reading continues after an empty page.
func TestPagesAreReadAsNeeded(t *testing.T) {
	c, s := serve(t,
		status(200, `{"jobs":[{"job_id":"job_3"},{"job_id":"job_2"}],"next_cursor":"c/1"}`),
		status(200, `{"jobs":[],"next_cursor":"c/2"}`),
		status(200, `{"jobs":[{"job_id":"job_1","error":{"code":"timeout","message":"m"}}],"next_cursor":null}`))
	var ids []string
	for job, err := range c.Jobs(bounded(t), client.JobFilter{Status: "failed", Model: "gen-2.5"}, 5) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, job.ID)
	}
	if !slices.Equal(ids, []string{"job_3", "job_2", "job_1"}) {
		t.Errorf("got %v", ids)
	}
	want := []string{"GET /v1/jobs?limit=5&model=gen-2.5&status=failed",
		"GET /v1/jobs?cursor=c%2F1&limit=3&model=gen-2.5&status=failed",
		"GET /v1/jobs?cursor=c%2F2&limit=3&model=gen-2.5&status=failed"}
	if got := s.requests(); !slices.Equal(got, want) {
		t.Errorf("the requests were %v, want %v", got, want)
	}
}

func TestEndlessListsAreCutOff(t *testing.T) {
	for name, page := range map[string]string{
		"empty pages": `{"files":[],"next_cursor":"c"}`, "many values": `{"files":[{}` + strings.Repeat(",{}", 1<<20) + `]}`,
	} {
		c, s := serve(t, status(200, page))
		var failed error
		for _, err := range c.Files(bounded(t), 10) {
			failed = err
		}
		if asked := len(s.requests()); failed == nil || bounded(t).Err() != nil || asked > 2000 {
			t.Errorf("%s: %v after %d requests", name, failed, asked)
		}
	}
}

func TestChatStreamReportsItsEnd(t *testing.T) {
	const piece = "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n"
	for name, c := range map[string]struct {
		stream, said string
		tokens       int
		fails        string
	}{
		"whole": {
			": wait\n\n" + fmt.Sprintf(piece, "Hel") + fmt.Sprintf(piece, "lo") +
				"data: {\"choices\":[],\"usage\":{\"total_tokens\":5}}\n\ndata: [DONE]\n\n",
			"Hello", 5, "",
		},
		"truncated": {fmt.Sprintf(piece, "Hel"), "Hel", 0, "no connection"},
		"with an event of many lines": {
			fmt.Sprintf(piece, "Hel") + strings.Repeat("data: "+strings.Repeat(" ", 1000)+"\n", 2000) + "\ndata: [DONE]\n\n",
			"Hel", 0, "too long",
		},
		"with an error": {
			fmt.Sprintf(piece, "Hel") + "data: {\"error\":{\"message\":\"the model " +
				"left\",\"type\":\"api_error\",\"code\":\"upstream_error\"}}\n\ndata: [DONE]\n\n",
			"Hel", 0, "the model left",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c2, s := serve(t, status(200, c.stream, "Content-Type", "text/event-stream"))
			var said strings.Builder
			usage, err := c2.Stream(bounded(t), client.Chat{Model: "m"},
				func(text string) error { said.WriteString(text); return nil })
			if said.String() != c.said || usage.TotalTokens != c.tokens {
				t.Errorf("got %q with %d tokens", &said, usage.TotalTokens)
			}
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got error %v, want %q", err, c.fails)
			}
			if got := s.all()[0].header.Get("Authorization"); got != "Bearer ck_test_key" {
				t.Errorf("the key is %q", got)
			}
		})
	}
}
