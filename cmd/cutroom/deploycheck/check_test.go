package deploycheck_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/cmd/cutroom/deploycheck"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/patience"
	"cutroom/shared/testkit/servertest"
)

// cloud is what a deploy in order shows to its deployer.
type cloud struct {
	// looks counts how often the workers were looked at.
	looks     atomic.Int64
	workers   func(look int) (wanted, running int)
	dead      int
	lifetimes []string
	ends      func() time.Time
	alarms    map[string]string
	forgotten []string

	// lost says whether a worker can be lost, and runs how many runs its job has.
	lost bool
	runs int
	// overdue is the job that cannot be done in time, and timedOut how long after its
	// creation it ends, with the code.
	overdue  atomic.Pointer[job.Job]
	timedOut time.Duration
	code     job.Code
	// fired is the alarm that was set off, story what becomes of it.
	fired string
	story deploycheck.AlarmStory
}

func newCloud() *cloud {
	c := &cloud{
		// The first one is wanted at the second look, and runs at the third.
		workers: func(look int) (wanted, running int) { return min(look-1, 1), max(min(look-2, 1), 0) },
		ends:    func() time.Time { return time.Now().Add(7*24*time.Hour + 10*time.Minute) },
		alarms:  map[string]string{},
		lost:    true, runs: 2, timedOut: 2 * time.Second, code: job.TimedOut,
		story: deploycheck.AlarmStory{Recovered: true, Actions: 1, Done: 1},
	}
	for _, name := range deploycheck.AlarmNames() {
		c.alarms[name] = "OK"
	}
	return c
}

func (c *cloud) Workers(context.Context) (wanted, running int, err error) {
	wanted, running = c.workers(int(c.looks.Add(1)))
	return wanted, running, nil
}

func (c *cloud) DeadLetters(context.Context) (map[string]int, error) {
	return map[string]int{"video-dead-letters": c.dead}, nil
}
func (c *cloud) Lifetimes(context.Context) ([]string, error)       { return c.lifetimes, nil }
func (c *cloud) JobEnd(context.Context, string) (time.Time, error) { return c.ends(), nil }
func (c *cloud) Alarms(context.Context) (map[string]string, error) { return c.alarms, nil }

func (c *cloud) Accept(_ context.Context, j job.Job) error {
	c.overdue.Store(&j)
	return nil
}
func (c *cloud) Lose(context.Context, string) (bool, error) { return c.lost, nil }
func (c *cloud) Runs(context.Context, string) (int, error)  { return c.runs, nil }
func (c *cloud) Fire(_ context.Context, alarm string) error {
	c.fired = alarm
	return nil
}
func (c *cloud) Story(_ context.Context, alarm string, _ time.Time) (deploycheck.AlarmStory, error) {
	if alarm != c.fired {
		return deploycheck.AlarmStory{}, errors.New("the alarm was not set off")
	}
	return c.story, nil
}

// answerOverdue answers for the job that was accepted with a deadline of its own: the server
// does not know it.
func (c *cloud) answerOverdue(w http.ResponseWriter, r *http.Request) bool {
	j := c.overdue.Load()
	if j == nil || r.URL.Path != "/v1/jobs/"+j.ID {
		return false
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"job_id": j.ID, "status": "failed", "created_at": j.CreatedAt, "completed_at": j.CreatedAt.Add(c.timedOut),
		"error": map[string]any{"code": c.code, "message": "…"},
	})
	return true
}

func (c *cloud) Forget(_ context.Context, key credential.Key) error {
	if key.RevokedAt.IsZero() {
		return errors.New("a key that works would be deleted")
	}
	c.forgotten = append(c.forgotten, key.ID)
	return nil
}

// deployment is a server that stands in for a deploy, with something like API Gateway in
// front of each service.
type deployment struct {
	server *servertest.Server
	keys   credential.Store
	models *catalog.Catalog
}

func start(t *testing.T) deployment {
	t.Helper()
	ctx := patience.TestContext(t)
	program, err := servertest.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// A check looks at how jobs end, not at their pictures.
	small := filepath.Join(t.TempDir(), "catalog.yaml")
	source, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "domain", "catalog", "catalog.yaml"))
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

// breakage does something wrong with a call. It reports whether the call is answered.
type breakage func(w http.ResponseWriter, r *http.Request) bool

// front serves a service as API Gateway would, and breaks what it is told to.
func front(t *testing.T, target string, gateway bool, cold *atomic.Bool, breaks breakage,
	rewrite func(*http.Response) error) string {
	t.Helper()
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(parsed)
	proxy.FlushInterval = -1
	// Each call comes from an address of its own: the server slows down an address that
	// fails to authenticate, which functions do not.
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
		case r.ContentLength > 10<<20 && r.Header.Get("Content-Type") == "application/json":
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.Header().Set("x-amzn-RequestId", "front")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			if gateway {
				_, _ = io.WriteString(w, `{"error":{"message":"too large","type":"invalid_request_error"}}`)
			} else {
				_, _ = io.WriteString(w, `{"detail":"too large"}`)
			}
		case strings.HasPrefix(r.URL.Path, "/v1/generate/") && len(r.Header.Get("Content-Type")) > 0 &&
			r.ContentLength > 300 && cold.CompareAndSwap(true, false):
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			// An answer that begins before the end of the request's body was read would else break
			// the connection to the server.
			if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
				t.Error(err)
			}
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// trial is a run against a deploy that may be broken.
type trial struct {
	only     []string
	breaks   breakage
	rewrite  func(*http.Response) error
	cloud    func(*cloud)
	receiver int
	warm     bool
}

// outcome is what a run found.
type outcome struct {
	results map[string]deploycheck.Result
	summary deploycheck.Summary
	cloud   *cloud
	err     error
}

func (d deployment) run(ctx context.Context, t *testing.T, with trial) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience.Max)
	defer cancel()
	status := with.receiver
	if status == 0 {
		status = http.StatusNoContent
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(receiver.Close)
	var cold atomic.Bool
	cold.Store(!with.warm)
	found := outcome{results: map[string]deploycheck.Result{}, cloud: newCloud()}
	if with.cloud != nil {
		with.cloud(found.cloud)
	}
	media := front(t, d.server.URL(), false, &cold, func(w http.ResponseWriter, r *http.Request) bool {
		return with.breaks != nil && with.breaks(w, r) || found.cloud.answerOverdue(w, r)
	}, with.rewrite)
	found.summary, found.err = deploycheck.Run(ctx, deploycheck.Config{
		Deploy: deploycheck.Deploy{Stage: "test", MediaURL: media,
			InferenceURL: front(t, d.server.InferenceURL(), true, &cold, with.breaks, with.rewrite),
			RealtimeURL:  "ws" + strings.TrimPrefix(media, "http") + "/v1/stream"},
		Cloud: found.cloud, Keys: d.keys, Catalog: d.models, Random: rand.Reader, Now: time.Now,
		Poll: 50 * time.Millisecond, FireAlarm: true, Receiver: receiver.URL, UploadSize: 1 << 20, Crowd: 8, Only: with.only,
		Report: func(r deploycheck.Result) error {
			found.results[r.Check] = r
			return nil
		},
	})
	return found
}

// A deploy in order holds every check, and nothing is left of a run.
func TestAllHolds(t *testing.T) {
	d := start(t)
	found := d.run(t.Context(), t, trial{})
	if found.err != nil {
		t.Fatal(found.err)
	}
	for _, name := range deploycheck.Names() {
		if r := found.results[name]; r.State != deploycheck.Held {
			t.Errorf("%s: %s %s", name, r.State, r.Detail)
		}
	}
	if found.summary.Cost <= 0 || found.summary.Cost >= 1 {
		t.Errorf("it cost $%.2f", found.summary.Cost)
	}
	d.nothingIsLeft(t, found)
	t.Run("Broken", func(t *testing.T) { testBroken(t, d) })
	t.Run("Interrupted", func(t *testing.T) { testInterrupted(t, d) })
	t.Run("Soon", func(t *testing.T) { testJobsThatEndSoon(t, d) })
}

// nothingIsLeft makes sure that the keys of a run are revoked and deleted.
func (d deployment) nothingIsLeft(t *testing.T, found outcome) {
	t.Helper()
	for _, account := range []string{found.summary.Account, found.summary.Account + "-b"} {
		keys, err := d.keys.ListKeys(t.Context(), account)
		if err != nil || len(keys) == 0 {
			t.Fatalf("the keys of %s: %v %v", account, keys, err)
		}
		for _, key := range keys {
			if key.RevokedAt.IsZero() || !slices.Contains(found.cloud.forgotten, key.ID) {
				t.Errorf("%s of %s is left", key.ID, account)
			}
		}
	}
}

// A run that is interrupted takes its keys away all the same.
func testInterrupted(t *testing.T, d deployment) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	found := d.run(ctx, t, trial{only: []string{"cancel", "chat"}, breaks: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			cancel()
		}
		return false
	}})
	if !errors.Is(found.err, context.Canceled) {
		t.Fatalf("the run ended with %v", found.err)
	}
	d.nothingIsLeft(t, found)
}

// A job that ends before it can be cancelled says nothing of the deploy: another is.
func testJobsThatEndSoon(t *testing.T, d deployment) {
	var asked atomic.Int64
	found := d.run(t.Context(), t, trial{only: []string{"cancel"}, breaks: func(w http.ResponseWriter, r *http.Request) bool {
		return r.Method == http.MethodDelete && asked.Add(1) == 1 && answering(409, `{"detail":"The job has ended."}`)(w, r)
	}})
	if r := found.results["cancel"]; found.err != nil || r.State != deploycheck.Held || asked.Load() < 2 {
		t.Errorf("%s %s, %v", r.State, r.Detail, found.err)
	}
}

// on breaks the calls of a method and a path.
func on(method, path string, then func(http.ResponseWriter, *http.Request) bool) breakage {
	form := regexp.MustCompile(path)
	return func(w http.ResponseWriter, r *http.Request) bool {
		return r.Method == method && form.MatchString(r.URL.Path) && then(w, r)
	}
}

// answering answers with a status and a body.
func answering(status int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
}

// replacing replaces what the answers of a path have that match.
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

// earlier makes the jobs of the account that comes first seem to have ended long ago.
func earlier() func(*http.Response) error {
	var first atomic.Pointer[string]
	change := replacing(oneJob, `"completed_at": ?"20`, `"completed_at":"19`)
	return func(r *http.Response) error {
		key := r.Request.Header.Get("x-api-key")
		if r.Request.Method == http.MethodPost {
			first.CompareAndSwap(nil, &key)
		}
		if of := first.Load(); of == nil || key != *of {
			return nil
		}
		return change(r)
	}
}

// twoJobs stands in for a job that is completed at once, and a second one that ends as it is
// told to.
func twoJobs(second string) breakage {
	var submitted atomic.Int64
	const id, completed = "job_0BxStandsIn0000000000", `"status":"completed"`
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v1/jobs/") {
			return false
		}
		if r.Method == http.MethodPost {
			return answering(200, fmt.Sprintf(`{"job_id":"%s%d","status":"pending"}`, id, submitted.Add(1)))(w, r)
		}
		end := completed
		if strings.HasSuffix(r.URL.Path, "2") && second != "" {
			end = second
		}
		return answering(200, `{"job_id":"`+path.Base(r.URL.Path)+`",`+end+`}`)(w, r)
	}
}

const oneJob = `^/v1/jobs/job_[^/]+$`

// Each check is seen to fail on a deploy in which one thing is broken, and says where to
// look.
func testBroken(t *testing.T, d deployment) {
	for _, c := range []struct {
		name, check, says string
		trial
	}{
		{"a job fails", "job", "failed", trial{rewrite: replacing(oneJob, `"completed"`, `"failed"`)}},
		{"no worker is woken", "wake", "no worker was wanted", trial{only: []string{"job", "wake"},
			cloud: func(c *cloud) { c.workers = func(int) (int, int) { return 0, 0 } }}},
		{"an image edit is not refused while no worker runs", "wake", "503", trial{only: []string{"job", "wake"}, warm: true}},
		{"a lost worker's job is done thrice", "lost-worker", "in 3 runs, want 2", trial{only: []string{"job", "lost-worker"},
			breaks: twoJobs(""), cloud: func(c *cloud) { c.runs = 3 }}},
		{"a lost worker's job is lost", "lost-worker", "worker_lost", trial{only: []string{"job", "lost-worker"},
			breaks: twoJobs(`"status":"failed","error":{"code":"worker_lost","message":"…"}`)}},
		{"an image edit fails", "image", "500", trial{breaks: on("POST", "^/v1/generate/", answering(500, "{}"))}},
		{"anybody may list jobs", "routes", "GET /v1/jobs with no key: 200, want 401",
			trial{breaks: on("GET", "^/v1/jobs$", answering(200, `{"jobs": []}`))}},
		{"nobody may list models", "routes", "GET /v1/models", trial{breaks: on("GET", "^/v1/models/", answering(500, "{}"))}},
		{"a refusal says no reason", "routes", "without its reason", trial{rewrite: replacing("/v1/webhooks/secret", ".+", "{}")}},
		{"an unknown route is API Gateway's", "gateway-answers", "404",
			trial{breaks: on("GET", "/unknown$", answering(403, `{"message":"Missing Authentication Token"}`))}},
		{"a call that looks signed is API Gateway's", "gateway-answers", "signed for AWS: 403 without its reason",
			trial{breaks: func(w http.ResponseWriter, r *http.Request) bool {
				return strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-") && answering(403, `{"message":"Forbidden"}`)(w, r)
			}}},
		{"an unknown method is API Gateway's", "gateway-answers", "by PATCH: 403, want 404",
			trial{breaks: on("PATCH", "/unknown$", answering(403, `{"message":"Missing Authentication Token"}`))}},
		{"an execution does not time out", "timeout", "as it was read",
			trial{cloud: func(c *cloud) { c.timedOut = time.Minute }}},
		{"a timeout is another failure", "timeout", "engine_error",
			trial{cloud: func(c *cloud) { c.code = job.EngineError }}},
		{"pages may not ask", "preflight", "204", trial{breaks: on("OPTIONS", "", answering(403, "{}"))}},
		{"a broken video is an engine's error", "failure", "invalid_input",
			trial{rewrite: replacing(oneJob, "invalid_input", "engine_error")}},
		{"a cancelled job goes on", "cancel", "cancelled", trial{rewrite: replacing(oneJob, `"cancelled"`, `"timeout"`)}},
		{"ranges are ignored", "content", "206", trial{breaks: func(_ http.ResponseWriter, r *http.Request) bool {
			r.Header.Del("Range")
			return false
		}}},
		{"signed uploads are refused", "upload", "403", trial{breaks: on("PUT", "", answering(403, "AccessDenied"))}},
		{"stored bytes change", "form-upload", "others came back", trial{rewrite: replacing("^/v1/uploads/", `(?s)^.{4}`, "????")}},
		{"one account is served last", "fairness", "ended after all",
			trial{rewrite: earlier()}},
		{"tokens are not told", "chat", "x-tokens-used", trial{rewrite: func(r *http.Response) error {
			r.Header.Del("X-Tokens-Used")
			return nil
		}}},
		{"streams are cut off", "stream", "without [DONE]", trial{rewrite: replacing("/chat/completions$", `data: \[DONE\]`, "")}},
		{"usage is counted twice", "usage", "metered", trial{only: []string{"chat", "usage"},
			rewrite: replacing("^/v1/usage$", `"requests": ?\d+`, `"requests":99`)}},
		{"a webhook is not tried again", "webhook-retry", "tried 1 times",
			trial{rewrite: replacing("/deliveries$", `^.*$`,
				`{"deliveries":[{"attempt":1,"status":404,"error":"The receiver answered with status 404.","next_attempt_at":null}]}`)}},
		{"a webhook does not arrive", "webhook", "gone", trial{receiver: http.StatusGone}},
		{"no session can be opened", "realtime", "open a session", trial{breaks: on("GET", "^/v1/stream$", answering(404, "{}"))}},
		{"a room cannot be joined", "live-video", "open the room's signalling",
			trial{breaks: on("GET", "^/v1/rooms/", answering(404, "There is no such room."))}},
		{"a table keeps its items", "tables", "cutroom-test-jobs",
			trial{cloud: func(c *cloud) { c.lifetimes = []string{"cutroom-test-jobs"} }}},
		{"a record never ends", "lifetimes", "never", trial{cloud: func(c *cloud) { c.ends = func() time.Time { return time.Time{} } }}},
		{"a message was given up on", "dead-letters", "video-dead-letters has 1", trial{cloud: func(c *cloud) { c.dead = 1 }}},
		{"an alarm is missing", "alarms", "no alarm media-errors",
			trial{cloud: func(c *cloud) { delete(c.alarms, "media-errors") }}},
		{"an alarm tells nobody", "alarm-fires", "Failed to execute",
			trial{cloud: func(c *cloud) { c.story.Failure = "Failed to execute action arn:aws:sns:…" }}},
		{"an alarm tells", "alarms", "dead-letters is in alarm", trial{cloud: func(c *cloud) { c.alarms["dead-letters"] = "ALARM" }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.only == nil {
				c.only = []string{c.check}
			}
			found := d.run(t.Context(), t, c.trial)
			if found.err != nil {
				t.Fatal(found.err)
			}
			r := found.results[c.check]
			if r.State != deploycheck.Failed || !strings.Contains(r.Detail, c.says) {
				t.Errorf("%s: %s, want it to have failed and to say %q", r.State, r.Detail, c.says)
			}
			if r.Runbook == "" || found.summary.Failed == 0 {
				t.Errorf("it leads nowhere: %+v %+v", r, found.summary)
			}
		})
	}
}

// What a failing check leads to is there, and the alarms that are looked for are those of
// the runbook.
func TestTheRunbookHasWhatChecksLeadTo(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Alarms\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var headings []string
	for _, heading := range regexp.MustCompile(`(?m)^### (.+)$`).FindAllStringSubmatch(section, -1) {
		headings = append(headings, heading[1])
	}
	names := deploycheck.AlarmNames()
	slices.Sort(names)
	if slices.Sort(headings); !slices.Equal(names, headings) {
		t.Errorf("the alarms are %v, the runbook has %v", names, headings)
	}
	for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(string(text), -1) {
		headings = append(headings, strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-"))
	}
	for check, anchor := range deploycheck.Runbook() {
		if !slices.Contains(headings, anchor) {
			t.Errorf("%s leads to %s, which the runbook has not", check, anchor)
		}
	}
}
