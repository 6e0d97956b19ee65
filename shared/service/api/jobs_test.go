package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

func (w *world) submit(key string) string {
	w.t.Helper()
	return w.accepted(w.post("gen-pro-t2v", key, text("prompt", "x")))
}

func (w *world) start(id string) {
	w.t.Helper()
	if _, err := w.records.Start(w.t.Context(), id, "nonce", w.now()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) fail(id string, failure job.Failure) {
	w.t.Helper()
	if err := w.records.Fail(w.t.Context(), id, "nonce", failure, w.now()); err != nil {
		w.t.Fatal(err)
	}
}

func TestJobStatusMatchesContract(t *testing.T) {
	w := newWorld(t, setup{})
	w.stopClock()
	id := w.accepted(w.post("gen-latest", studio, upload("data", clip(t)), text("seed", "42"), text("prompt", "a <b>")))
	if !regexp.MustCompile(`^job_[0-9A-Z]{26}$`).MatchString(id) {
		t.Errorf("the id is %q", id)
	}
	const moment = `"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`
	asked := `"prompt":"a <b>","options":\{"enhance_prompt":true,"resolution":"720p","self_anchor":true\},` +
		`"inputs":\{"data":\{"name":"upload","mime":"video/mp4","size_bytes":` + fmt.Sprint(len(clip(t))) +
		`\}\},"planned":\{"width":1280,"height":720,"fps":20\}`
	check := func(state, pattern string) {
		t.Helper()
		a := w.get("/v1/jobs/"+id, studio)
		pattern = strings.NewReplacer("ID", id, "TIME", moment, "ASKED", asked).Replace(pattern)
		if a.status != 200 || !regexp.MustCompile("^"+pattern+"$").MatchString(a.body) {
			t.Errorf("%s: %d %s", state, a.status, a.body)
		}
	}
	check("pending",
		`\{"job_id":"ID","status":"pending","model":"gen-2\.5","created_at":TIME,"started_at":null,"completed_at":null,`+
			`"progress":0,"queue_position":1,"seed":42,ASKED\}`)
	w.start(id)
	if err := w.records.Progress(t.Context(), id, "nonce", 0.25); err != nil {
		t.Fatal(err)
	}
	w.pass(4 * time.Second)
	check("processing",
		`\{"job_id":"ID","status":"processing","model":"gen-2\.5","created_at":TIME,"started_at":TIME,"completed_at":null,`+
			`"progress":0\.25,"seconds_left":1[23],"seed":42,ASKED\}`)
	w.complete(id, "the result", "video/mp4")
	check("completed",
		`\{"job_id":"ID","status":"completed","model":"gen-2\.5","created_at":TIME,"started_at":TIME,"completed_at":TIME,`+
			`"progress":1,"seed":42,ASKED,"result":\{"mime":"video/mp4","size_bytes":10,"expires_at":TIME\}\}`)

	id = w.accepted(w.post("gen-pro-t2v", studio, text("prompt", "x"), text("seed", "0")))
	w.start(id)
	w.fail(id, job.Failure{Code: job.InvalidInput, Message: "The video <x> cannot be decoded."})
	check("failed",
		`\{"job_id":"ID","status":"failed","model":"gen-pro-t2v","created_at":TIME,"started_at":TIME,"completed_at":TIME,`+
			`"progress":0,"seed":0,"prompt":"x","options":\{"enhance_prompt":true,"orientation":"landscape",`+
			`"resolution":"720p"\},"inputs":\{\},"planned":\{"width":1280,"height":704,"fps":25\},`+
			`"error":\{"code":"invalid_input","message":"The video <x> cannot be decoded\."\}\}`)
}

// The job counts as failed even if no process is running to record that.
func TestJobPastDeadlineHasFailed(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.submit(studio)
	w.later.Store(int64(10 * time.Minute))
	var body struct {
		Status string
		Error  job.Failure
	}
	if err := json.Unmarshal([]byte(w.get("/v1/jobs/"+id, studio).body), &body); err != nil {
		t.Fatal(err)
	}
	if body.Status != "failed" || body.Error != job.TimeoutFailure() {
		t.Errorf("got %+v", body)
	}
	if a := w.get("/v1/jobs/"+id+"/content", studio); a.status != 409 || !strings.Contains(a.detail(), "timeout") {
		t.Errorf("the content: %d %s", a.status, a.body)
	}
}

func TestMissingSeedIsRandom(t *testing.T) {
	w := newWorld(t, setup{})
	seeds := map[uint32]bool{}
	for range 5 {
		seeds[w.record(w.submit(studio)).Seed] = true
	}
	if len(seeds) < 4 {
		t.Errorf("five jobs have the seeds %v", seeds)
	}
}

// brokenStore fails before or after it has stored a job.
type brokenStore struct {
	job.Store
	after bool
	err   error
}

func (s brokenStore) Accept(ctx context.Context, j job.Job, limit int, claims ...budget.Claim) error {
	if s.after {
		if err := s.Store.Accept(ctx, j, limit, claims...); err != nil {
			return err
		}
	}
	return s.err
}

// The job may have been accepted despite the error.
func TestInputsOfUncertainJobAreKept(t *testing.T) {
	video := clip(t)
	for _, c := range []struct {
		name   string
		store  brokenStore
		status int
		stays  bool
	}{
		{"refused", brokenStore{err: fault.New(fault.Limited, "Full.")}, 429, false},
		{"no space for the record", brokenStore{err: fault.New(fault.StorageFull, "Full.")}, 507, false},
		{"the response was lost", brokenStore{after: true, err: errors.New("connection reset")}, 500, true},
		{"the outcome is unknown", brokenStore{err: fault.New(fault.Unavailable, "Try again.")}, 503, true},
	} {
		w := newWorld(t, setup{store: func(s job.Store) job.Store { c.store.Store = s; return c.store }})
		a := w.post("gen-2.5", studio, upload("data", video))
		if a.status != c.status {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
		if stays := len(w.files()) > 0; stays != c.stays {
			t.Errorf("%s: the files are %v", c.name, w.files())
		}
		if c.status == 500 && (a.detail() != "Internal server error" ||
			!strings.Contains(w.log.String(), "connection reset")) {
			t.Errorf("%s: the client sees %s, the log %s", c.name, a.body, w.log.String())
		}
	}
}

// starvedStore fails as if there were no free file descriptors.
type starvedStore struct{ blob.Store }

func (starvedStore) Put(context.Context, string, io.Reader) (int64, error) {
	return 0, &fs.PathError{Op: "open", Path: "blob", Err: syscall.EMFILE}
}

func (starvedStore) Open(context.Context, string, int64, int64) (io.ReadCloser, error) {
	return nil, &fs.PathError{Op: "open", Path: "blob", Err: syscall.EMFILE}
}

// The error must not blame the file.
func TestLackOfResourcesIsReported(t *testing.T) {
	w := newWorld(t, setup{blobs: func(s blob.Store) blob.Store { return starvedStore{s} }})
	a := w.post("gen-2.5", studio, upload("data", clip(t)))
	if a.status != 503 || a.header.Get("Retry-After") == "" || a.detail() == "" {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

func TestCustomCatalogFieldsWork(t *testing.T) {
	w := newWorld(t, setup{catalog: []byte(`
limits: {video: {duration: 5m, width: 4096, height: 4096}, image: {pixels: 5}}
forms:
  f:
    urlencoded: true
    fields:
      - {name: note, type: text, max: 1}
      - {name: resolution, type: choice, values: [a, b, c], default: c}
      - {name: steps, type: integer, min: -2, default: 4}
      - {name: free, type: text}
models:
  - {id: m, kind: text-to-video, form: f, fps: 20, duration: 1s, sizes: {a: 16x16, b: 16x16, c: 16x16}}
`)})
	o := w.outcome("", w.post("m", studio, text("note", "ab"), text("resolution", "d"), text("steps", "-3")))
	var messages []string
	for _, p := range o.lines {
		messages = append(messages, p.(problem).Msg)
	}
	want := []string{"String should have at most 1 character", "Input should be 'a', 'b' or 'c'",
		"Input should be greater than or equal to -2"}
	if !slices.Equal(messages, want) {
		t.Errorf("got %q", messages)
	}
	id := w.accepted(w.post("m", studio, text("note", "é"), text("steps", "99999999999999999999"),
		text("free", strings.Repeat("x", 5000))))
	options := w.record(id).Request.Options
	if options["note"] != "é" || options["resolution"] != "c" || len(options["free"].(string)) != 5000 ||
		options["steps"] != int64(math.MaxInt64) && options["steps"] != float64(math.MaxInt64) {
		t.Errorf("the options are %.100v", options)
	}
}
