package api_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/job"
)

type share struct {
	URL       string
	ExpiresAt time.Time `json:"expires_at"`
}

func (w *world) askShare(id, key, body string, header ...string) answer {
	w.t.Helper()
	return w.request("POST", "/v1/jobs/"+id+"/shares", key, strings.NewReader(body), header...)
}

func (w *world) share(id, body string) (made share, path string) {
	w.t.Helper()
	a := w.askShare(id, studio, body)
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != 200 {
		w.t.Fatalf("no link: %d %s", a.status, a.body)
	}
	path, ours := strings.CutPrefix(made.URL, w.url)
	if !ours {
		w.t.Fatalf("the link leads to %s", made.URL)
	}
	return made, path
}

func TestShareGivesAccessToOneResult(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.accepted(w.post("gen-2.5", studio, part{"data", "private name.mp4", clip(t)}, text("prompt", "a secret")))
	for _, key := range []string{studio} {
		if a := w.askShare(id, key, ""); a.status != 409 || a.header.Get("Retry-After") != "2" {
			t.Errorf("share of a pending job: %d %s", a.status, a.body)
		}
	}
	w.start(id)
	w.complete(id, "0123456789", "video/mp4")
	_, path := w.share(id, `{"expires_in": 60}`)
	whole := w.get(path, "")
	header := whole.header
	if whole.status != 200 || whole.body != "0123456789" || header.Get("Content-Type") != "video/mp4" ||
		header.Get("Content-Disposition") != `inline; filename="`+id+`.mp4"` ||
		header.Get("Referrer-Policy") != "no-referrer" || header.Get("X-Robots-Tag") != "noindex" {
		t.Errorf("got %d %q %v", whole.status, whole.body, header)
	}
	if some := w.get(path, "", "Range: bytes=2-4"); some.status != 206 || some.body != "234" {
		t.Errorf("a part: %d %q", some.status, some.body)
	}
	if same := w.get(path, "", "If-None-Match: "+header.Get("ETag")); same.status != 304 {
		t.Errorf("again: %d", same.status)
	}
	if head := w.request("HEAD", path, "", nil); head.status != 200 || head.header.Get("Content-Length") != "10" {
		t.Errorf("HEAD: %d", head.status)
	}
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		if a := w.request(method, path, "", nil); a.status != 405 || a.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d %s", method, a.status, a.body)
		}
	}
	at := w.now()
	if parsed, err := url.Parse(path); err != nil || strings.Contains(w.log.String(), parsed.Query().Get("signature")) {
		t.Errorf("the log has the signature, %v", err)
	}
	const refused = `{"detail":"The link is invalid or has expired."}`
	other := w.completed("another result", "video/mp4")
	for says, wrong := range map[string]string{
		"of another job":      strings.Replace(path, id, other, 1),
		"of no job":           strings.Replace(path, id, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", 1),
		"with a later end":    strings.Replace(path, "expires=", "expires=1", 1),
		"without an end":      strings.Replace(path, "expires=", "x=", 1),
		"without a signature": path[:strings.Index(path, "&signature=")],
		"without a query":     "/v1/shares/" + id,
	} {
		if a := w.get(wrong, ""); a.status != 403 || a.body != refused {
			t.Errorf("a link %s: %d %s", says, a.status, a.body)
		}
	}
	w.later.Store(int64(time.Minute) + int64(w.now().Sub(at)))
	if a := w.get(path, ""); a.status != 403 || a.body != refused {
		t.Errorf("expired share: %d %s", a.status, a.body)
	}
}

// A link expires at the requested time, or with the result if the result expires earlier.
func TestShareExpires(t *testing.T) {
	w := newWorld(t, setup{})
	w.stopClock()
	id := w.completed("0123456789", "video/mp4")
	end := w.record(id).CompletedAt.Add(24 * time.Hour).Truncate(time.Second)
	for body, want := range map[string]time.Time{
		"":                        end,
		"null":                    end,
		`{}`:                      end,
		`{"expires_in": null}`:    end,
		`{"expires_in": 86400}`:   end,
		`{"expires_in": 2592000}`: end,
		`{"expires_in": 3600}`:    w.now().Add(time.Hour).UTC().Truncate(time.Second),
	} {
		if made, _ := w.share(id, body); !made.ExpiresAt.Equal(want) {
			t.Errorf("%s: the share expires at %v, want %v", body, made.ExpiresAt, want)
		}
	}
	for _, body := range []string{
		`{"expires_in": 0}`, `{"expires_in": -1}`, `{"expires_in": 2592001}`, `{"expires_in": "60"}`,
		`{"expires_in": 1.5}`, `{"expires_in": []}`,
	} {
		if a := w.askShare(id, studio, body); a.status != 422 || !strings.Contains(a.body, `"loc":["body","expires_in"]`) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	if a := w.askShare(id, studio, "{"); a.status != 422 {
		t.Errorf("a broken body: %d %s", a.status, a.body)
	}
	_, path := w.share(id, "")
	w.pass(25 * time.Hour)
	if a := w.get(path, ""); a.status != 403 {
		t.Errorf("share of an expired result: %d %s", a.status, a.body)
	}
	if a := w.askShare(id, studio, ""); a.status != 404 {
		t.Errorf("share of a deleted result: %d %s", a.status, a.body)
	}
}

// A client token cannot share, because the link would outlive it. A failed job has no result to share.
func TestClientTokenCannotShare(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.completed("0123456789", "video/mp4")
	if a := w.askShare(id, w.mint(studio, credential.Scope{}), ""); a.status != 403 {
		t.Errorf("a client token: %d %s", a.status, a.body)
	}
	failed := w.submit(studio)
	w.start(failed)
	w.fail(failed, job.Failure{Code: job.EngineError, Message: "x"})
	if a := w.askShare(failed, studio, ""); a.status != 409 || a.header.Get("Retry-After") != "" {
		t.Errorf("a failed job: %d %s", a.status, a.body)
	}
}

func TestShareURLIncludesProxyPrefix(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.completed("0123456789", "video/mp4")
	for prefix, want := range map[string]string{
		"": "/v1/", "/live": "/live/v1/", "/a/b.c/": "/a/b.c/v1/", "//evil.example.com": "/v1/", "/a b": "/v1/", "x": "/v1/",
	} {
		var made share
		a := w.askShare(id, studio, "", "X-Forwarded-Proto: https", "X-Forwarded-Prefix: "+prefix)
		if err := json.Unmarshal([]byte(a.body), &made); err != nil {
			t.Fatal(a.body)
		}
		if !strings.HasPrefix(made.URL, "https://"+w.address+want+"shares/"+id+"?") {
			t.Errorf("below %q: %s", prefix, made.URL)
		}
	}
}
