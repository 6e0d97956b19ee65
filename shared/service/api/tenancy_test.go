package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
)

type tenancy struct {
	*world
	// These resources belong to account studio. picture has a thumbnail.
	pending, completed, stored, picture, md5, key, announced string
	checks                                                   int
}

func newTenancy(t *testing.T) *tenancy {
	t.Helper()
	y := &tenancy{world: newWorld(t, setup{})}
	y.pending, y.completed = y.submit(studio), y.submit(studio)
	y.start(y.completed)
	y.complete(y.completed, "the bytes", "video/mp4")
	y.key = idOf(y.newKey("studio"))
	kept := y.keep(studio, "the studio's bytes")
	y.stored, y.md5 = kept.ID, kept.MD5
	y.picture = y.keep(studio, picture(t)).ID
	f, err := y.shelf.Get(t.Context(), "studio", y.picture, y.now())
	if err == nil {
		err = file.StoreThumbnail(t.Context(), y.blobs, f.Blob, []byte("the bytes"))
	}
	if err != nil {
		t.Fatal(err)
	}
	var promise struct{ ID string }
	a := y.request("POST", "/v1/files", studio, strings.NewReader(
		`{"filename": "a.mp4", "mime_type": "video/mp4", "size_bytes": 5, "md5": "5d41402abc4b2a76b9719d911017c592"}`),
		"Content-Type: application/json")
	if err := json.Unmarshal([]byte(a.body), &promise); err != nil || promise.ID == "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	y.announced = promise.ID
	return y
}

// hides checks a response's status, and that the response reveals nothing about account studio.
func (y *tenancy) hides(what string, a answer, status int) {
	y.t.Helper()
	y.checks++
	if a.status != status {
		y.t.Errorf("%s: %d %s, want %d", what, a.status, a.body, status)
	}
	for _, secret := range []string{"the bytes", "the studio's bytes", "studio", y.md5} {
		if strings.Contains(a.body, secret) && !strings.Contains(what, secret) {
			y.t.Errorf("%s: it reveals %q: %s", what, secret, a.body)
		}
	}
}

// The response is identical to the response for a missing resource.
func TestAccountsAreIsolatedByID(t *testing.T) {
	y := newTenancy(t)
	callers := map[string]string{
		"key": rival, "admin key": y.newAdmin("rival"), "token": y.mint(rival, credential.Scope{}),
		"JWT":                y.issue(rival, credential.Scope{}).JWT,
		"token of the model": y.mint(rival, scoped("gen-pro-t2v")),
	}
	for name, secret := range callers {
		isToken := name != "key" && name != "admin key"
		for _, route := range []struct {
			method, path, id, unknown string
			// keyOnly routes reject tokens before any lookup. adminOnly routes also reject plain keys.
			keyOnly, adminOnly bool
		}{
			{"GET", "/v1/jobs/%s", y.pending, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"GET", "/v1/jobs/%s", y.completed, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"HEAD", "/v1/jobs/%s", y.completed, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"DELETE", "/v1/jobs/%s", y.pending, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"DELETE", "/v1/jobs/%s", y.completed, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"GET", "/v1/jobs/%s/content", y.completed, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"HEAD", "/v1/jobs/%s/content", y.completed, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"DELETE", "/v1/jobs/%s?purge=true", y.completed, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", true, false},
			{"POST", "/v1/jobs/%s/shares", y.completed, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", true, false},
			{"GET", "/v1/jobs/%s/thumbnail", y.completed, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"GET", "/v1/jobs/%s/thumbnail?size=poster", y.completed, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"GET", "/v1/jobs/%s/thumbnail?of=input", y.pending, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"GET", "/v1/jobs/%s/preview", y.pending, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"GET", "/v1/jobs/%s/credentials", y.completed, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"GET", "/v1/jobs/%s/content", y.pending, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"GET", "/v1/jobs/%s/events", y.completed, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"GET", "/v1/jobs/%s/events", y.pending, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"GET", "/v1/jobs/%s/deliveries", y.completed, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"GET", "/v1/jobs/%s/deliveries", y.pending, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", false, false},
			{"GET", "/v1/files/%s", y.stored, "file_unknown", false, false},
			{"HEAD", "/v1/files/%s", y.stored, "file_unknown", false, false},
			{"GET", "/v1/files/%s", y.announced, "file_unknown", false, false},
			{"DELETE", "/v1/files/%s", y.stored, "file_unknown", true, false},
			{"DELETE", "/v1/files/%s", y.announced, "file_unknown", true, false},
			{"GET", "/v1/uploads/%s", y.stored, "file_unknown", false, false},
			{"HEAD", "/v1/uploads/%s", y.stored, "file_unknown", false, false},
			{"GET", "/v1/uploads/%s/thumbnail", y.picture, "file_unknown", false, false},
			{"HEAD", "/v1/uploads/%s/thumbnail", y.picture, "file_unknown", false, false},
			{"GET", "/v1/uploads/%s/credentials", y.picture, "file_unknown", false, false},
			{"GET", "/v1/files/by-md5/%s", y.md5, strings.Repeat("0", 32), true, false},
			{"GET", "/v1/files/by-md5/%s", strings.ToUpper(y.md5), strings.Repeat("0", 32), true, false},
			{"DELETE", "/v1/keys/%s", y.key, "key_000000000000", true, true},
		} {
			want := http.StatusNotFound
			if route.keyOnly && isToken || route.adminOnly && name != "admin key" {
				want = http.StatusForbidden
			}
			for _, header := range [][]string{nil, {"Range: bytes=0-1"}, {"If-None-Match: *"}} {
				there := y.request(route.method, fmt.Sprintf(route.path, route.id), secret, nil, header...)
				what := fmt.Sprintf("%s "+route.path+" with the rival's %s %v", route.method, route.id, name, header)
				y.hides(what, there, want)
				nowhere := y.request(route.method, fmt.Sprintf(route.path, route.unknown), secret, nil, header...)
				if there.body != nowhere.body || there.status != nowhere.status {
					t.Errorf("%s: %d %s, and a missing one %d %s", what, there.status, there.body, nowhere.status, nowhere.body)
				}
			}
		}
		if isToken {
			for _, path := range []string{"/v1/jobs/" + y.completed + "/content", "/v1/jobs/" + y.completed + "/events", "/v1/jobs/" + y.pending + "/preview",
				"/v1/uploads/" + y.stored, "/v1/uploads/" + y.picture + "/thumbnail"} {
				y.hides(path+" by the query with "+name, y.get(path+"?api_key="+secret, ""), 404)
			}
		}
	}
	if a := y.get("/v1/jobs/"+y.pending, studio); a.status != 200 || !strings.Contains(a.body, `"pending"`) {
		t.Errorf("the pending job: %d %s", a.status, a.body)
	}
	if a := y.get("/v1/uploads/"+y.stored, studio); a.body != "the studio's bytes" {
		t.Errorf("the file: %d %s", a.status, a.body)
	}
	if y.checks < 160 {
		t.Errorf("%d checks were made, want at least 160", y.checks)
	}
}

func TestAccountsAreIsolatedInLists(t *testing.T) {
	y := newTenancy(t)
	y.keep(studio, "another")
	for _, path := range []string{"/v1/jobs", "/v1/files"} {
		a := y.get(path, rival)
		y.hides(path, a, 200)
		if strings.Contains(a.body, "job_") || strings.Contains(a.body, "file_") {
			t.Errorf("%s lists %s", path, a.body)
		}
		var page struct {
			NextCursor string `json:"next_cursor"`
		}
		if err := json.Unmarshal([]byte(y.get(path+"?limit=1", studio).body), &page); err != nil || page.NextCursor == "" {
			t.Fatalf("%s has no cursor: %v", path, err)
		}
		y.hides("the studio's cursor of "+path, y.get(path+"?cursor="+page.NextCursor, rival), 422)
		y.hides("the studio's cursor of "+path+", with a limit", y.get(path+"?limit=1000&cursor="+page.NextCursor, rival),
			422)
	}
	secret := func(key string) string { return y.get("/v1/webhooks/secret", key).body }
	if secret(studio) == secret(rival) {
		t.Error("two accounts share a webhook secret")
	}
	if keys := y.get("/v1/keys", y.newAdmin("rival")); keys.status != 200 || strings.Contains(keys.body, y.key) {
		t.Errorf("the rival's keys: %d %s", keys.status, keys.body)
	}
	for _, query := range []string{"", "?expires=9999999999&signature=" + strings.Repeat("a", 43)} {
		a := y.request("PUT", "/v1/uploads/"+y.announced+query, rival, strings.NewReader("hello"))
		y.hides("bytes for the studio's upload "+query, a, 403)
	}
}
