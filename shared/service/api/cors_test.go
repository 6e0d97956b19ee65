package api_test

import (
	"net/http"
	"strings"
	"testing"

	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/platform/httpserver"
)

// A browser page can read every response, including errors (docs/contract/errors.md#cors).
func TestOtherOriginsCanReadResponses(t *testing.T) {
	w := newWorld(t, setup{maxUpload: 1 << 20, rate: ratelimit.Rate{PerSecond: 0.01, Burst: 4}})
	const origin = "Origin: https://app.example.com"
	for _, c := range []struct {
		status int
		a      answer
	}{
		{200, w.get("/healthz", "", origin)},
		{200, w.get("/healthz", "")}, // a cache may serve this response to another origin
		{404, w.get("/nowhere", "", origin)},
		{404, w.get("/./healthz", "", origin)},
		{405, w.request(http.MethodPut, "/healthz", "", nil, origin)},
		{401, w.get("/v1/jobs/job_x", "", origin)},
		{404, w.get("/v1/jobs/job_x", studio, origin)},
		{404, w.request(http.MethodPost, "/v1/jobs/gen-9", studio, nil, origin)},
		{413, w.request(http.MethodPost, "/v1/jobs/gen-2.5", studio, strings.NewReader(strings.Repeat("x", 3<<20)), origin)},
		{422, w.request(http.MethodPost, "/v1/jobs/gen-2.5", studio, nil, origin)},
		{200, w.request(http.MethodPost, "/v1/client/tokens", studio, nil, origin)},
		{429, w.request(http.MethodPost, "/v1/client/tokens", studio, nil, origin)},
	} {
		if c.a.status != c.status || c.a.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%d, want %d: %v", c.a.status, c.status, c.a.header)
		}
		exposed := ", " + c.a.header.Get("Access-Control-Expose-Headers") + ","
		for _, name := range []string{"X-Request-Id", "Retry-After", "RateLimit-Remaining", "ETag", "Content-Disposition",
			"Link", "Deprecation"} {
			if !strings.Contains(exposed, ", "+name+",") {
				t.Errorf("%d: %s is not exposed", c.status, name)
			}
		}
	}
}

func TestPreflightListsMethods(t *testing.T) {
	w := newWorld(t, setup{})
	preflight := func(path, method string, header ...string) answer {
		return w.request(http.MethodOptions, path, "", nil, append(header, "Origin: https://app.example.com",
			"Access-Control-Request-Method: "+method)...)
	}
	for _, c := range []struct{ path, method, methods string }{
		{"/v1/jobs/gen-2.5", "POST", "POST"},
		{"/v1/jobs/gen-2.5", "PUT", "POST"}, // the browser will not send the PUT
		{"/v1/jobs/job_x", "DELETE", "DELETE, GET, HEAD, POST"},
	} {
		a := preflight(c.path, c.method, "Access-Control-Request-Headers: x-api-key,content-type")
		if a.status != 204 || a.body != "" || a.header.Get("Access-Control-Allow-Origin") != "*" ||
			a.header.Get("Access-Control-Allow-Methods") != c.methods ||
			a.header.Get("Access-Control-Allow-Headers") != "x-api-key,content-type" {
			t.Errorf("%s: %d %v", c.path, a.status, a.header)
		}
	}
	if a := preflight("/v1/jobs/gen-2.5", "POST"); a.status != 204 ||
		a.header.Values("Access-Control-Allow-Headers") != nil {
		t.Errorf("without fields: %d %v", a.status, a.header)
	}
	if a := preflight("/nowhere", "POST"); a.status != 404 || a.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("nowhere: %d %v", a.status, a.header)
	}
	// An OPTIONS request that is not a preflight is treated like any other method.
	if a := w.request(http.MethodOptions, "/v1/jobs/gen-2.5", "", nil, "Origin: https://a.example"); a.status != 405 {
		t.Errorf("a plain OPTIONS: %d", a.status)
	}
}

func TestOnlyConfiguredOriginsAreAllowed(t *testing.T) {
	w := newWorld(t, setup{origins: httpserver.Origins{"https://a.example", "http://localhost:3000"}})
	for origin, allowed := range map[string]string{
		"https://a.example": "https://a.example", "http://localhost:3000": "http://localhost:3000",
		"https://b.example": "", "http://localhost": "", "null": "", "": "",
	} {
		a := w.get("/healthz", "", "Origin: "+origin)
		if a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != allowed || a.header.Get("Vary") != "Origin" {
			t.Errorf("from %q: %d %v", origin, a.status, a.header)
		}
		a = w.request(http.MethodOptions, "/v1/client/tokens", "", nil, "Origin: "+origin,
			"Access-Control-Request-Method: POST")
		if a.header.Get("Access-Control-Allow-Origin") != allowed {
			t.Errorf("a preflight from %q: %d %v", origin, a.status, a.header)
		}
	}
}
