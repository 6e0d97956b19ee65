package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"cutroom/shared/service/api"
)

// Each request has one error fewer than the previous one: see
// docs/contract/errors.md#order-of-checks.
func TestChecksFollowContractOrder(t *testing.T) {
	w := newWorld(t, setup{maxUpload: 1 << 20, workers: 1, pending: 1})
	tooLarge := strings.Repeat("x", 3<<20)
	post := func(path, key string) answer {
		return w.request("POST", path, key, strings.NewReader(tooLarge), "Content-Type: text/plain")
	}
	check := func(name string, a answer, status int, detail string) {
		t.Helper()
		if a.status != status || a.detail() != detail {
			t.Errorf("%s: %d %s, want %d %q", name, a.status, a.body, status, detail)
		}
		if a.header.Get("x-request-id") == "" {
			t.Errorf("%s: no request id", name)
		}
	}
	check("no route", post("/v1/job/gen-2.5", ""), 404, "Not Found")
	check("a route of the text gateway", post("/v1/chat/completions", ""), 404, "Not Found. The text gateway has another address, which cutroom dev prints.")
	check("no method", w.request("PUT", "/v1/jobs/gen-2.5", "", strings.NewReader(tooLarge)), 405, "Method Not Allowed")
	check("no key", post("/v1/jobs/gen-9", ""), 401, "An API key is required in the header x-api-key.")
	check("a malformed key", post("/v1/jobs/gen-9", "sk_x"), 401, "The API key is not valid.")
	check("an unknown key", post("/v1/jobs/gen-9", "ck_unknown_key"), 401, "The API key is not valid.")
	check("no such model", post("/v1/jobs/gen-9", studio), 404, `The model "gen-9" does not exist.`)
	check("too large", post("/v1/jobs/gen-2.5", studio), 413,
		"The request body is larger than 2097152 bytes. "+api.LargeUploads)
	if a := w.request("POST", "/v1/jobs/gen-2.5", studio, strings.NewReader("x")); a.status != 422 {
		t.Errorf("the content: %d", a.status)
	}

	w.accepted(w.post("gen-pro-t2v", studio, text("prompt", "x")))
	limited := post("/v1/jobs/gen-2.5", studio)
	check("over a limit of the account, and too large", limited, 429,
		"The account has reached its limit of pending or processing jobs (1).")
	if seconds := limited.header.Get("Retry-After"); seconds == "" || seconds == "0" {
		t.Errorf("Retry-After is %q", seconds)
	}
	check("another account is not", post("/v1/jobs/gen-2.5", rival), 413,
		"The request body is larger than 2097152 bytes. "+api.LargeUploads)
	w.nothingStays()
}

func TestRoutesMatchExactly(t *testing.T) {
	w := newWorld(t, setup{})
	const noRoute, noMethod = `{"detail":"Not Found"}`, `{"detail":"Method Not Allowed"}`
	for _, c := range []struct {
		method, path string
		status       int
		body, allow  string
	}{
		{"GET", "/v1", 404, noRoute, ""},
		{"POST", "/v1/jobs", 405, noMethod, "GET, HEAD"},
		{"GET", "/v1/jobs/", 404, noRoute, ""},
		{"POST", "/v1/jobs/", 404, noRoute, ""},
		{"POST", "/v1/jobs/gen-2.5/", 404, noRoute, ""},
		{"GET", "/v1/jobs/job_x/content/", 404, noRoute, ""},
		{"GET", "/v1/jobs/job_x/more", 404, noRoute, ""},
		{"GET", "/v1/jobs//job_x", 404, noRoute, ""},
		{"GET", "/v1/./jobs/job_x", 404, noRoute, ""},
		{"GET", "/v1/jobs/../jobs/job_x", 404, noRoute, ""},
		{"GET", "/v1/jobs/./job_x", 404, noRoute, ""},
		{"GET", "/v1/jobs/%2e%2e/job_x", 404, noRoute, ""},
		{"GET", "/V1/jobs/job_x", 404, noRoute, ""},
		{"GET", "/healthz/", 404, noRoute, ""},
		{"PUT", "/v1/jobs/gen-2.5", 405, noMethod, "POST"},
		{"GET", "/v1/jobs/gen-latest", 405, noMethod, "POST"},
		{"GET", "/v1/jobs/gen-9", 401, `{"detail":"An API key is required in the header x-api-key."}`, ""},
		{"GET", "/healthz", 200, `{"status":"ok"}`, ""},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			a := w.request(c.method, c.path, "", nil)
			if a.status != c.status || a.body != c.body || a.header.Get("Allow") != c.allow ||
				a.header.Get("Content-Type") != "application/json" {
				t.Errorf("got %d %s %v", a.status, a.body, a.header)
			}
			if a.header.Get("Content-Length") != fmt.Sprint(len(c.body)) || a.header.Get("x-request-id") == "" {
				t.Errorf("got %v", a.header)
			}
		})
	}
}

func TestHeadMatchesGet(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.accepted(w.post("gen-pro-t2v", studio, text("prompt", "x")))
	for path, status := range map[string]int{
		"/healthz": 200, "/v1/jobs/" + id: 200, "/v1/jobs/job_x": 404, "/v1/jobs/" + id + "/content": 409, "/nowhere": 404,
	} {
		get, head := w.get(path, studio), w.request(http.MethodHead, path, studio, nil)
		if head.status != status || get.status != status || head.body != "" ||
			head.header.Get("Content-Length") != fmt.Sprint(len(get.body)) {
			t.Errorf("%s: GET %d %s, HEAD %d %q %v", path, get.status, get.body, head.status, head.body, head.header)
		}
	}
}

func TestHealthReportsReadiness(t *testing.T) {
	ready := false
	w := newWorld(t, setup{ready: func(context.Context) error {
		if ready {
			return nil
		}
		return errors.New("the secret reason")
	}})
	if a := w.get("/healthz", ""); a.status != 503 || a.detail() != "The service is not accepting requests at the moment." {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if !strings.Contains(w.log.String(), "the secret reason") {
		t.Error("the reason is not in the log")
	}
	ready = true
	if a := w.get("/healthz", ""); a.status != 200 {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

func TestSingleGroupCanBeServed(t *testing.T) {
	w := newWorld(t, setup{groups: []api.Group{api.Content}})
	for path, status := range map[string]int{"/v1/jobs/job_x/content": 404, "/v1/jobs/job_x": 404, "/healthz": 404} {
		a := w.get(path, studio)
		if known := a.detail() == "Job not found."; a.status != status || known != strings.HasSuffix(path, "/content") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}
