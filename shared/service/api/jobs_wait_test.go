package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

func TestCallersWaitForTheEndOfAJob(t *testing.T) {
	w := newWorld(t, setup{})
	status := func(a answer) string {
		var body struct{ Status string }
		if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
		return body.Status
	}
	id, other := w.submit(studio), w.submit(studio)
	for range keyStreams - 1 { // one more wait is allowed
		w.follow(other, studio)
	}
	start := time.Now()
	if got := status(w.get("/v1/jobs/"+id+"?wait=1", studio)); got != "pending" || time.Since(start) < time.Second {
		t.Errorf("%s after %v", got, time.Since(start))
	}
	// A wait ends when its caller disconnects.
	ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer leave()
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/v1/jobs/"+id+"?wait=60", nil)
	request.Header.Set("x-api-key", studio)
	if _, err := http.DefaultTransport.RoundTrip(request); err == nil {
		t.Error("the wait ended early")
	}
	for w.get("/v1/jobs/"+id+"?wait=1", studio).status == 429 {
	}
	done := make(chan answer, 1)
	go func() {
		a := w.get("/v1/jobs/"+id+"?wait=60", studio)
		for ; a.status == 429; a = w.get("/v1/jobs/"+id+"?wait=60", studio) {
		}
		done <- a
	}()
	var busy answer
	for busy = w.get("/v1/jobs/"+id+"?wait=1", studio); busy.status == 200; busy = w.get("/v1/jobs/"+id+"?wait=1", studio) {
	}
	if busy.status != 429 || busy.header.Get("Retry-After") == "" {
		t.Errorf("a second wait: %d %s", busy.status, busy.body)
	}
	w.start(id)
	w.complete(id, "0123456789", "video/mp4")
	start = time.Now()
	if got := status(<-done); got != "completed" || time.Since(start) > 10*time.Second {
		t.Errorf("%s after %v", got, time.Since(start))
	}
	start = time.Now()
	if got := status(w.get("/v1/jobs/"+id+"?wait=60", studio)); got != "completed" || time.Since(start) > 10*time.Second {
		t.Errorf("an ended job: %s after %v", got, time.Since(start))
	}
	for _, wait := range []string{"61", "-1", "x", "1.5"} {
		if a := w.get("/v1/jobs/"+id+"?wait="+wait, studio); a.status != 422 || !strings.Contains(a.body, `["query","wait"]`) {
			t.Errorf("%s: %d %s", wait, a.status, a.body)
		}
	}
	if a := w.get("/v1/jobs/"+id+"?wait=1", rival); a.status != 404 {
		t.Errorf("another account: %d %s", a.status, a.body)
	}
}

func TestPreferredWaitReturnsTheJob(t *testing.T) {
	w := newWorld(t, setup{})
	body, contentType := multiform(text("prompt", "x"))
	create := func(prefer string) answer {
		return w.request(http.MethodPost, "/v1/jobs/gen-pro-t2v", studio, strings.NewReader(body), "Content-Type: "+contentType,
			"Prefer: "+prefer)
	}
	for _, prefer := range []string{"wait=x", "wait", "wait=-1", "respond-async", "wait=0"} {
		if a := create(prefer); w.accepted(a) == "" || a.header.Get("Preference-Applied") != "" {
			t.Errorf("%s: %d %v %s", prefer, a.status, a.header, a.body)
		}
	}
	open := create("respond-async, wait=1")
	if open.header.Get("Preference-Applied") != "wait=1" || !strings.Contains(open.body, `"created_at"`) ||
		!strings.Contains(open.body, `"status":"pending"`) {
		t.Errorf("%d %v %s", open.status, open.header, open.body)
	}
	done := make(chan answer, 1)
	before := w.openJobs("studio")
	go func() { done <- create("wait=3600") }()
	for w.openJobs("studio") == before {
		time.Sleep(10 * time.Millisecond)
	}
	id := w.jobIDs(studio, "")[0]
	w.start(id)
	w.fail(id, job.Failure{Code: job.EngineError, Message: "It failed."})
	if a := <-done; a.status != 200 || a.header.Get("Preference-Applied") != "wait=60" || !strings.Contains(a.body, id) ||
		!strings.Contains(a.body, `"status":"failed"`) {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
}
