package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/servertest"
)

// stubCloud simulates a healthy deployment unless its fields say otherwise.
type stubCloud struct {
	looks     int
	fleet     func(look int) (wanted, running int)
	state     error
	forgotten []string
}

func newStubCloud() *stubCloud {
	// The first worker is requested at the second read and runs at the third.
	return &stubCloud{fleet: func(look int) (wanted, running int) { return min(look-1, 1), max(min(look-2, 1), 0) }}
}

func (c *stubCloud) workers(context.Context) (wanted, running int, err error) {
	c.looks++
	wanted, running = c.fleet(c.looks)
	return wanted, running, nil
}

func (c *stubCloud) deadLetters(context.Context) error     { return c.state }
func (c *stubCloud) tablesAndAlarms(context.Context) error { return nil }
func (c *stubCloud) forget(_ context.Context, key credential.Key) error {
	if key.RevokedAt.IsZero() {
		return errors.New("a key that works would be deleted")
	}
	c.forgotten = append(c.forgotten, key.ID)
	return nil
}

type deployment struct {
	server *servertest.Server
	keys   credential.Store
	models *catalog.Catalog
}

func start(t *testing.T) deployment {
	t.Helper()
	ctx := await.TestContext(t)
	program, err := servertest.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// The check only looks at how jobs end, so small pictures are enough.
	small := filepath.Join(t.TempDir(), "catalog.yaml")
	source, err := os.ReadFile(filepath.Join("..", "..", "shared", "domain", "catalog", "catalog.yaml"))
	if err == nil {
		err = os.WriteFile(small, servertest.SmallResults(source), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	server, err := program.Start(ctx, data, "CUTROOM_WEBHOOK_ALLOW=127.0.0.1", "CUTROOM_CATALOG="+small,
		"CUTROOM_RTC_ADDR=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	opened, err := sqlite.Open(ctx, filepath.Join(data, "cutroom.db"), sqlite.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	models, err := catalog.Default(catalog.DefaultFamily)
	if err != nil {
		t.Fatal(err)
	}
	return deployment{server, opened.Keys(), models}
}

// breakage breaks a request. It reports whether it has sent the response.
type breakage func(w http.ResponseWriter, r *http.Request) bool

// front serves a service as API Gateway would, and applies a breakage.
func front(t *testing.T, target string, cold *atomic.Bool, breaks breakage,
	rewrite func(*http.Response) error) string {
	t.Helper()
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(parsed)
	proxy.FlushInterval = -1
	// Each request gets another client address, because the server, unlike the functions, delays
	// addresses that fail to authenticate.
	var calls atomic.Uint32
	proxy.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network,
		address string) (net.Conn, error) {
		n := calls.Add(1)
		from := &net.TCPAddr{IP: net.IPv4(127, 1, byte(n>>8), byte(n))}
		return (&net.Dialer{LocalAddr: from}).DialContext(ctx, network, address)
	}}
	proxy.ModifyResponse = rewrite
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case breaks != nil && breaks(w, r):
		case strings.HasPrefix(r.URL.Path, "/v1/generate/") && len(r.Header.Get("Content-Type")) > 0 &&
			r.ContentLength > 300 && cold.CompareAndSwap(true, false):
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			// Otherwise a response that starts before the request body is complete would break the
			// connection to the server.
			if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
				t.Error(err)
			}
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

type trial struct {
	only     []string
	breaks   breakage
	rewrite  func(*http.Response) error
	cloud    func(*stubCloud)
	receiver int
	warm     bool
}

type found struct {
	lines map[string]string
	cloud *stubCloud
	err   error
}

func (d deployment) run(ctx context.Context, t *testing.T, with trial) found {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, await.Max)
	defer cancel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(cmp.Or(with.receiver, http.StatusNoContent))
	}))
	t.Cleanup(receiver.Close)
	var cold atomic.Bool
	cold.Store(!with.warm)
	cloud := newStubCloud()
	if with.cloud != nil {
		with.cloud(cloud)
	}
	media := front(t, d.server.URL(), &cold, with.breaks, with.rewrite)
	var printed bytes.Buffer
	v := &visit{
		options: options{only: with.only, uploadSize: 1 << 20, receiver: receiver.URL},
		deploy: deploy{stage: "test", mediaURL: media, inferenceURL: front(t, d.server.InferenceURL(), &cold, with.breaks,
			with.rewrite), realtimeURL: "ws" + strings.TrimPrefix(media, "http") + "/v1/stream"},
		cloud: cloud, keys: d.keys, out: &printed, poll: 50 * time.Millisecond, wakeTime: 10 * time.Second,
	}
	if with.receiver < 0 {
		v.receiver = ""
	}
	if err := v.choose(d.models); err != nil {
		t.Fatal(err)
	}
	f := found{lines: map[string]string{}, cloud: cloud, err: v.checkAll(ctx)}
	name := ""
	for line := range strings.Lines(printed.String()) {
		if words := strings.Fields(line); words[0] != "see:" {
			name = words[1]
		}
		f.lines[name] += line
	}
	// A run leaves no key behind.
	keys, err := d.keys.ListKeys(t.Context(), v.account)
	if err != nil || len(keys) == 0 {
		t.Fatalf("the keys of %s: %v %v", v.account, keys, err)
	}
	for _, key := range keys {
		if key.RevokedAt.IsZero() || !slices.Contains(cloud.forgotten, key.ID) {
			t.Errorf("the key %s of %s still exists", key.ID, v.account)
		}
	}
	return f
}

func TestChecksPassOnHealthyDeployment(t *testing.T) {
	d := start(t)
	f := d.run(t.Context(), t, trial{rewrite: renaming("x-amzn-Remapped-WWW-Authenticate")})
	if f.err != nil {
		t.Fatal(f.err)
	}
	for _, c := range checks() {
		if !strings.HasPrefix(f.lines[c.name], held) {
			t.Errorf("%s: %q", c.name, f.lines[c.name])
		}
	}
	t.Run("Broken", func(t *testing.T) { testBroken(t, d) })
	t.Run("Interrupted", func(t *testing.T) { testInterrupted(t, d) })
	t.Run("Refused webhook", func(t *testing.T) {
		f := d.run(t.Context(), t, trial{only: []string{"webhook"}, receiver: -1})
		if !strings.Contains(f.lines["webhook"], "/v1/unknown returned 404 404") {
			t.Errorf("%q %v", f.lines["webhook"], f.err)
		}
	})
}

func testInterrupted(t *testing.T, d deployment) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := d.run(ctx, t, trial{only: []string{"job", "stream"}, breaks: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			cancel()
		}
		return false
	}})
	if !errors.Is(f.err, context.Canceled) || f.lines["stream"] != "" {
		t.Errorf("the run ended with %v and %q", f.err, f.lines["stream"])
	}
}

func on(method, path string, then func(http.ResponseWriter, *http.Request) bool) breakage {
	form := regexp.MustCompile(path)
	return func(w http.ResponseWriter, r *http.Request) bool {
		return r.Method == method && form.MatchString(r.URL.Path) && then(w, r)
	}
}

func answering(status int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
}

func replacing(path, old, other string) func(*http.Response) error {
	in, form := regexp.MustCompile(path), regexp.MustCompile(old)
	return func(r *http.Response) error {
		if !in.MatchString(r.Request.URL.Path) {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		r.Body.Close()
		body = form.ReplaceAll(body, []byte(other))
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
}

// renaming gives the header WWW-Authenticate another name, or removes it.
func renaming(name string) func(*http.Response) error {
	return func(r *http.Response) error {
		if value := r.Header.Get("WWW-Authenticate"); name != "" && value != "" {
			r.Header.Set(name, value)
		}
		r.Header.Del("WWW-Authenticate")
		return nil
	}
}

const oneJob = `^/v1/jobs/job_[^/]+$`

// testBroken breaks one part of a deployment. The check must then fail and name a runbook section.
func testBroken(t *testing.T, d deployment) {
	for _, c := range []struct {
		name, check, says string
		trial
	}{
		{"a job fails", "job", "failed", trial{rewrite: replacing(oneJob, `"completed"`, `"failed"`)}},
		{"no worker is woken", "job", "no worker was requested", trial{
			cloud: func(c *stubCloud) { c.fleet = func(int) (int, int) { return 0, 0 } }}},
		{"an image edit is not rejected while no worker runs", "job", "want 503", trial{warm: true}},
		{"an image edit fails", "image", "500", trial{breaks: on("POST", "^/v1/generate/", answering(500, "{}"))}},
		{"anyone can list jobs", "keys", "200, want 401",
			trial{breaks: on("GET", "^/v1/jobs$", answering(200, `{"jobs": [], "next_cursor": null}`))}},
		{"anyone can read usage", "keys", "GET /v1/usage",
			trial{breaks: on("GET", "^/v1/usage$", answering(200, `{"data": []}`))}},
		{"rejections name no scheme", "keys", "no WWW-Authenticate", trial{rewrite: renaming("")}},
		{"signed uploads are rejected", "upload", "status 403", trial{breaks: on("PUT", "", answering(403, "AccessDenied"))}},
		{"stored bytes change", "upload", "the file has MD5", trial{rewrite: replacing("^/v1/uploads/", `(?s)^.{4}`, "????")}},
		{"streams are cut off", "stream", "broke after", trial{rewrite: replacing("/chat/completions$", `data: \[DONE\]`, "")}},
		{"usage is counted twice", "stream", "metered",
			trial{rewrite: replacing("^/v1/usage$", `"requests": ?\d+`, `"requests":99`)}},
		{"a webhook is not retried", "webhook", "returned 404 to 1 attempts, want 2", trial{receiver: -1,
			rewrite: replacing("/deliveries$", `^.*$`,
				`{"deliveries":[{"attempt":1,"status":404,"error":"The receiver responded with status 404.","next_attempt_at":null}]}`)}},
		{"a webhook does not arrive", "webhook", "410", trial{receiver: http.StatusGone}},
		{"no session can be opened", "realtime", "open a session", trial{breaks: on("GET", "^/v1/stream$", answering(404, "{}"))}},
		{"a message was given up on", "state", "video-dead-letters has 1",
			trial{cloud: func(c *stubCloud) { c.state = errors.New("video-dead-letters has 1 messages") }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.only == nil {
				c.only = []string{c.check}
			}
			f := d.run(t.Context(), t, c.trial)
			line := f.lines[c.check]
			if !strings.HasPrefix(line, failed) || !strings.Contains(line, c.says) ||
				!strings.Contains(line, "see: "+runbookPage+"#") {
				t.Errorf("the line is %q, want failed, %q and a runbook section (%v)", line, c.says, f.err)
			}
		})
	}
}

func TestRunbookHasEveryCheckSection(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	var anchors []string
	for _, heading := range regexp.MustCompile(`(?m)^###? (.+)$`).FindAllStringSubmatch(string(text), -1) {
		anchors = append(anchors, strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-"))
	}
	wanted := alarmNames
	for _, c := range checks() {
		wanted = append(wanted, c.runbook)
	}
	for _, anchor := range wanted {
		if !slices.Contains(anchors, anchor) {
			t.Errorf("the runbook has no section %s", anchor)
		}
	}
}

func TestContextIsParsed(t *testing.T) {
	for arguments, want := range map[string]string{
		"": "", "-c stage=test": "test", "-c family=x --context stage=a": "a", "--context=stage=b": "b", "-cstage=c": "c",
		"-c stage=a -c stage=b": "b", "-c family=stage --require-approval never": "",
	} {
		if got := contextOf(strings.Fields(arguments))["stage"]; got != want {
			t.Errorf("%q: stage %q, want %q", arguments, got, want)
		}
	}
}
