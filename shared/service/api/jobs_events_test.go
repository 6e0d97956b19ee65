package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/job"
)

type events struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Scanner
	leave    context.CancelFunc
}

type event struct {
	ID       string
	Status   string
	Progress float64
}

func (w *world) follow(id, key string, header ...string) *events {
	w.t.Helper()
	ctx, leave := context.WithCancel(w.t.Context())
	w.t.Cleanup(leave)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/v1/jobs/"+id+"/events", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("x-api-key", key)
	for _, field := range header {
		name, value, _ := strings.Cut(field, ": ")
		request.Header.Set(name, value)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { response.Body.Close() })
	for field, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store",
		"X-Accel-Buffering": "no"} {
		if got := response.Header.Get(field); got != want || response.StatusCode != 200 {
			w.t.Errorf("%d with %s: %q, want %q", response.StatusCode, field, got, want)
		}
	}
	e := &events{w.t, response, bufio.NewScanner(response.Body), leave}
	if !e.lines.Scan() || e.lines.Text() != "retry: 2000" || !e.lines.Scan() || e.lines.Text() != "" {
		w.t.Fatalf("the events begin with %q", e.lines.Text())
	}
	return e
}

func (e *events) next() (next event, ok bool) {
	e.t.Helper()
	fields := map[string]string{}
	for e.lines.Scan() {
		line := e.lines.Text()
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ": ")
		fields[name] = value
	}
	if len(fields) == 0 {
		return event{}, false
	}
	if err := json.Unmarshal([]byte(fields["data"]), &next); err != nil || fields["event"] != "job" || len(fields) != 3 {
		e.t.Fatalf("an event is %q", fields)
	}
	next.ID = fields["id"]
	return next, true
}

func (e *events) until(what string, is func(event) bool) event {
	e.t.Helper()
	for {
		next, ok := e.next()
		if !ok {
			e.t.Fatalf("the events end before: %s", what)
		}
		if is(next) {
			return next
		}
	}
}

func (e *events) end() {
	e.t.Helper()
	if next, more := e.next(); more {
		e.t.Errorf("got %+v after the end", next)
	}
	if err := e.lines.Err(); err != nil {
		e.t.Errorf("the stream broke off: %v", err)
	}
}

func TestEventsShowEveryChange(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.submit(studio)
	e := w.follow(id, studio)
	want := func(id, status string, progress float64) {
		t.Helper()
		if got, _ := e.next(); got != (event{id, status, progress}) {
			t.Errorf("got %+v, want %s %s %g", got, id, status, progress)
		}
	}
	want("1", "pending", 0)
	w.start(id)
	want("2", "processing", 0)
	if err := w.records.Progress(t.Context(), id, "nonce", 0.5); err != nil {
		t.Fatal(err)
	}
	want("3", "processing", 0.5)
	w.complete(id, "bytes", "video/mp4")
	want("4", "completed", 1)
	e.end()

	e = w.follow(id, studio) // a job that has ended has a single event
	want("1", "completed", 1)
	e.end()
}

func TestEventShowsTheJob(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.submit(studio)
	w.wantCancelled(w.cancel(id, studio))
	a := w.get("/v1/jobs/"+id+"/events", studio)
	if want := fmt.Sprintf("retry: 2000\n\nid: 1\nevent: job\ndata: %s\n\n",
		w.get("/v1/jobs/"+id, studio).body); a.body != want {
		t.Errorf("got %q, want %q", a.body, want)
	}
}

// After reconnecting, the client gets the job's current state, and the event numbers continue.
func TestEventsResumeAfterDroppedConnection(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.submit(studio)
	e := w.follow(id, studio)
	last, _ := e.next()
	e.leave()
	if _, err := io.Copy(io.Discard, e.response.Body); err == nil {
		t.Error("the connection is not lost")
	}
	w.start(id)
	w.complete(id, "bytes", "video/mp4")
	e = w.follow(id, studio, "Last-Event-ID: "+last.ID)
	if got, _ := e.next(); got != (event{"2", "completed", 1}) {
		t.Errorf("after reconnecting the client got %+v", got)
	}
	e.end()
}

// One job is cancelled, and the other passes its deadline.
func TestEventsEndWithTheJob(t *testing.T) {
	w := newWorld(t, setup{})
	cancelled, overdue := w.submit(studio), w.submit(studio)
	failed := func(e event) bool { return e.Status == "failed" }
	e := w.follow(cancelled, studio)
	w.wantCancelled(w.cancel(cancelled, studio))
	e.until("the job is cancelled", failed)
	e.end()
	e = w.follow(overdue, studio)
	w.later.Store(int64(job.MaxAge))
	e.until("the job is overdue", failed)
	e.end()
}

func TestShutdownEndsEvents(t *testing.T) {
	stopping, stop := context.WithCancel(t.Context())
	w := newWorld(t, setup{stopping: stopping})
	e := w.follow(w.submit(studio), studio)
	e.next()
	stop()
	e.end()
}

func TestDrainingEndsEvents(t *testing.T) {
	draining, drain := context.WithCancel(t.Context())
	w := newWorld(t, setup{draining: draining})
	id := w.submit(studio)
	e := w.follow(id, studio)
	e.next()
	drain()
	e.end()
	w.start(id)
}

// A stream survives the expiry of its token.
func TestRevocationEndsEvents(t *testing.T) {
	w := newWorld(t, setup{})
	id, parent := w.submit(studio), w.newKey("studio")
	byKey := w.follow(id, parent)
	byToken := w.follow(id, w.mint(parent, credential.Scope{}))
	bystander := w.follow(id, w.mint(studio, credential.Scope{}))
	for _, e := range []*events{byKey, byToken, bystander} {
		e.next()
	}
	w.revoke(parent)
	w.pass(credential.DefaultTokenLifetime + credential.CacheAge)
	w.start(id)
	byKey.end()
	byToken.end()
	if got, _ := bystander.next(); got.Status != "processing" {
		t.Errorf("got %+v", got)
	}
}

// Each response contains only the job's current state, and the client reconnects.
func TestEventsWorkWithoutStreaming(t *testing.T) {
	w := newWorld(t, setup{eventsOnce: true})
	e := w.follow(w.submit(studio), studio, "Last-Event-ID: 7")
	if got, _ := e.next(); got != (event{"8", "pending", 0}) {
		t.Errorf("got %+v", got)
	}
	e.end()
}

func TestHeadOfEventsHasNoBody(t *testing.T) {
	w := newWorld(t, setup{})
	a := w.request(http.MethodHead, "/v1/jobs/"+w.submit(studio)+"/events", studio, nil)
	if a.status != 200 || a.body != "" || a.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("got %d %v", a.status, a.header)
	}
}

// A browser's EventSource cannot set headers. Permanent keys are not accepted in the query.
func TestEventsAcceptTokenInQuery(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.submit(studio)
	w.wantCancelled(w.cancel(id, studio))
	token := w.mint(studio, credential.Scope{Origins: []string{"https://app.example.com"}})
	for _, c := range []struct {
		path, secret, origin string
		status               int
	}{
		{"/events", token, "https://app.example.com", 200},
		{"/events", token, "https://other.example.com", 403},
		{"/events", studio, "https://app.example.com", 401},
		{"/events", "ek_0123456789", "https://app.example.com", 401},
		{"/events", "", "https://app.example.com", 401},
		{"", token, "https://app.example.com", 401},
	} {
		a := w.get("/v1/jobs/"+id+c.path+"?api_key="+c.secret, "", "Origin: "+c.origin)
		if a.status != c.status {
			t.Errorf("%s with %s from %s: %d %s", c.path, c.secret, c.origin, a.status, a.body)
		}
		if strings.Contains(w.log.String(), token) {
			t.Fatal("the token is in the log")
		}
	}
}

// Open streams are limited per account and per key. Closing one allows another.
func TestEventStreamsAreLimited(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.submit(studio)
	second := w.newKey("studio")
	full := func(key string) {
		t.Helper()
		a := w.get("/v1/jobs/"+id+"/events", key)
		if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" ||
			a.header.Get("Content-Type") != "application/json" {
			t.Errorf("one more stream: %d %s", a.status, a.body)
		}
	}
	var open []*events
	for range keyStreams {
		open = append(open, w.follow(id, studio))
	}
	full(studio)
	full(w.mint(studio, credential.Scope{})) // a token shares its key's limit
	for range accountStreams - keyStreams {
		w.follow(id, second)
	}
	full(second)
	w.start(id)
	w.complete(id, "bytes", "video/mp4")
	for _, e := range open {
		for more := true; more; {
			_, more = e.next()
		}
	}
	w.follow(id, studio)
}
