package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/service/api"
)

func TestRootLinksToDocumentation(t *testing.T) {
	w := newWorld(t, setup{})
	a := w.get("/", "")
	var body map[string]string
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != 200 {
		t.Fatalf("%d %s, %v", a.status, a.body, err)
	}
	for _, name := range []string{"docs", "openapi", "health"} {
		path, relative := strings.CutPrefix(body[name], ".")
		if there := w.get(path, ""); !relative || there.status != 200 {
			t.Errorf("%s is at %q: %d", name, body[name], there.status)
		}
	}
	if page := w.get("/", "", "Accept: text/html,*/*"); page.status != http.StatusTemporaryRedirect ||
		page.header.Get("Location") != "./docs" {
		t.Errorf("a browser: %d %v", page.status, page.header)
	}
}

func TestAllowListsSupportedMethods(t *testing.T) {
	w := newWorld(t, setup{})
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	paths := map[string]bool{"/v1/jobs/gen-2.5": true, "/v1/jobs/gen-latest": true, "/v1/generate/gen-image-2": true,
		"/v1/generate/gen-clip": true}
	for _, endpoint := range api.Endpoints(api.Config{}) {
		paths[strings.NewReplacer("{$}", "", "{id}", "job_x", "{file_id}", "file_x", "{md5}", strings.Repeat("a", 32),
			"{key_id}", "key_x").Replace(endpoint.Path)] = true
	}
	for path := range paths {
		var accepted []string
		allow := ""
		for _, method := range methods {
			a := w.request(method, path, "", nil)
			if a.status != http.StatusMethodNotAllowed {
				accepted = append(accepted, method)
				continue
			}
			if allow == "" {
				allow = a.header.Get("Allow")
			}
			if a.header.Get("Allow") != allow {
				t.Errorf("%s %s: Allow is %q, and %q elsewhere", method, path, a.header.Get("Allow"), allow)
			}
		}
		slices.Sort(accepted)
		if strings.Join(accepted, ", ") != allow {
			t.Errorf("%s: Allow is %q, and the accepted methods are %v", path, allow, accepted)
		}
		preflight := w.request("OPTIONS", path, "", nil, "Origin: https://a.example", "Access-Control-Request-Method: GET")
		if got := preflight.header.Get("Access-Control-Allow-Methods"); preflight.status != 204 || got != allow {
			t.Errorf("%s: a preflight gets %d %q, want %q", path, preflight.status, got, allow)
		}
	}
}

// <video> and <img> elements cannot send headers.
func TestContentAcceptsTokenInQuery(t *testing.T) {
	w := newWorld(t, setup{})
	done := w.completed("the bytes", "video/mp4")
	form, kind := multiform(upload("file", "some bytes"))
	var file struct{ ID string }
	if a := w.request("POST", "/v1/files", studio, strings.NewReader(form),
		"Content-Type: "+kind); json.Unmarshal([]byte(a.body), &file) != nil || file.ID == "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	token, other := w.issue(studio, scoped("gen-pro-t2v")), w.issue(studio, scoped("gen-2.5"))
	for path, bytes := range map[string]string{"/v1/jobs/" + done + "/content": "the bytes",
		"/v1/uploads/" + file.ID: "some bytes"} {
		for _, secret := range []string{token.Secret, token.JWT} {
			a := w.get(path+"?api_key="+secret, "", "Range: bytes=0-2")
			if a.status != 206 || a.body != bytes[:3] {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
			if a.header.Get("Referrer-Policy") != "no-referrer" || !strings.HasPrefix(a.header.Get("Cache-Control"), "private") {
				t.Errorf("%s: %v", path, a.header)
			}
			if strings.Contains(w.log.String(), secret) {
				t.Error("the token is in the log")
			}
		}
		for secret, want := range map[string]string{
			studio:          "api_key in the query must be a client token. Send a permanent key in the x-api-key header.",
			"":              "An API key is required in the header x-api-key.",
			"ek_0123456789": "The API key is not valid.",
		} {
			if a := w.get(path+"?api_key="+secret, ""); a.status != 401 || a.detail() != want {
				t.Errorf("%s with %q: %d %s", path, secret, a.status, a.body)
			}
		}
		// The header takes precedence. Routes that do not accept tokens in the query ignore them.
		if a := w.get(path+"?api_key="+token.Secret, "ck_0123456789"); a.status != 401 {
			t.Errorf("%s with a wrong header: %d", path, a.status)
		}
	}
	if a := w.get(fmt.Sprintf("/v1/jobs/%s/content?api_key=%s", done, other.Secret), ""); a.status != 403 {
		t.Errorf("with a token of another model: %d %s", a.status, a.body)
	}
	if a := w.get("/v1/jobs/"+done+"?api_key="+token.Secret, ""); a.status != 401 {
		t.Errorf("the status: %d %s", a.status, a.body)
	}
	if strings.Contains(w.log.String(), studio) {
		t.Error("the key is in the log")
	}
}
