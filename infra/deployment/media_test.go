package deployment

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/testkit/servertest"
)

// request is a call of the media service. {file}, {cursor} and {job} in its path
// stand for values that earlier calls returned.
type request struct {
	name, method, path string
	form               func() servertest.Form
	body, kind         string
	headers            []string
	// noKey sends no credential; token sends a client token, which the call "mint"
	// returned.
	noKey, token bool
	// keep is the name under which a field of the answer is kept, from the field.
	keep, from string
}

// testMedia sends the same calls to the deploy and to a one-machine server. The
// answers are the same, except for random values and times.
func testMedia(t *testing.T, d *deployed) {
	server, err := d.program.Start(bounded(t), t.TempDir(), "CUTROOM_WORKERS=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	t.Cleanup(func() { d.drain(t) })
	here, there := newCaller(server.Client()), newCaller(d.client(t, "media"))
	for _, r := range requests(t, d.root) {
		t.Run(r.name, func(t *testing.T) {
			want, got := here.send(t, r), there.send(t, r)
			if got.Status != want.Status {
				t.Fatalf("the deploy answers %d %s, one machine %d %s", got.Status, got.Body, want.Status, want.Body)
			}
			if got, want := masked(got.Body), masked(want.Body); got != want {
				t.Errorf("the deploy answers %s\none machine %s", got, want)
			}
			// API Gateway sets a content type even for an answer without a body.
			if len(want.Body) > 0 && got.Header.Get("Content-Type") != want.Header.Get("Content-Type") {
				t.Errorf("the deploy answers %s, one machine %s", got.Header.Get("Content-Type"), want.Header.Get("Content-Type"))
			}
			for _, name := range []string{
				"Allow", "Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers",
				"Access-Control-Max-Age", "Access-Control-Expose-Headers", "Retry-After", "Deprecation",
			} {
				if got, want := got.Header.Get(name), want.Header.Get(name); got != want {
					t.Errorf("the deploy's %s is %q, one machine's %q", name, got, want)
				}
			}
			if got.Header.Get("X-Request-Id") == "" {
				t.Error("the answer has no request id")
			}
		})
	}
}

// requests returns calls of all routes of the media service, with those that it
// refuses.
func requests(t *testing.T, root string) []request {
	t.Helper()
	picture, err := os.ReadFile(filepath.Join(root, "testdata", "reference.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	video := short(t)
	text := func(name, value string) func() servertest.Part {
		return func() servertest.Part { return servertest.Text(name, value) }
	}
	file := func(parts ...func() servertest.Part) func() servertest.Form {
		return func() servertest.Form {
			form := servertest.Form{servertest.File("file", `C:\media\..\a picture.jpg`, picture)}
			for _, part := range parts {
				form = append(form, part())
			}
			return form
		}
	}
	clip := func(parts ...func() servertest.Part) func() servertest.Form {
		return func() servertest.Form {
			form := servertest.Form{servertest.File("data", "clip.mp4", video)}
			for _, part := range parts {
				form = append(form, part())
			}
			return form
		}
	}
	// Random bytes show whether anything on the way changes binary bodies.
	noise := make([]byte, 70_000)
	for i := range noise {
		noise[i] = byte(i*i>>3 ^ i)
	}
	const json = "application/json"
	return []request{
		{name: "health", method: "GET", path: "/healthz", noKey: true},
		{name: "description", method: "GET", path: "/openapi.json", noKey: true},
		{name: "docs", method: "GET", path: "/docs", noKey: true},
		{name: "head", method: "HEAD", path: "/healthz", noKey: true},

		{name: "no key", method: "GET", path: "/v1/files", noKey: true},
		{name: "unknown key", method: "GET", path: "/v1/files", noKey: true, headers: []string{"x-api-key", "ck_unknown0"}},
		{name: "method that the path has not", method: "PUT", path: "/v1/files"},
		{name: "method that a job has not", method: "DELETE", path: "/v1/jobs/gen-2.5"},
		{name: "preflight", method: "OPTIONS", path: "/v1/files", noKey: true, headers: []string{
			"Origin", "https://app.example.com", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers",
			"x-api-key, x-other",
		}},
		{name: "an origin", method: "GET", path: "/v1/files", headers: []string{"Origin", "https://app.example.com"}},

		{name: "resolve", method: "POST", path: "/v1/models/resolve", body: `{"model":"gen-latest","models":["gen-vton-latest","gen-2.1"]}`, kind: json, noKey: true},
		{name: "resolve the unknown", method: "POST", path: "/v1/models/resolve", body: `{"model":"gen-9"}`, kind: json, noKey: true},
		{name: "resolve nothing", method: "POST", path: "/v1/models/resolve", body: `{}`, kind: json, noKey: true},
		{name: "resolve no JSON", method: "POST", path: "/v1/models/resolve", body: `{"model":`, kind: json, noKey: true},

		{name: "upload", method: "POST", path: "/v1/files", form: file(), keep: "file", from: "id"},
		{name: "upload of bytes", method: "POST", path: "/v1/files", form: func() servertest.Form { return servertest.Form{servertest.File("file", "noise", noise)} }},
		{name: "upload for ever", method: "POST", path: "/v1/files", form: file(text("ttl_seconds", "persistent"))},
		{name: "upload for too short", method: "POST", path: "/v1/files", form: file(text("ttl_seconds", "59"))},
		{name: "upload of nothing", method: "POST", path: "/v1/files", form: func() servertest.Form { return servertest.Form{servertest.Text("other", "x")} }},
		{name: "upload that is no form", method: "POST", path: "/v1/files", body: "plain", kind: "text/plain"},
		{name: "upload without its end", method: "POST", path: "/v1/files", body: "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nabc", kind: "multipart/form-data; boundary=b"},
		{name: "announcement of nothing", method: "POST", path: "/v1/files", body: `{}`, kind: json},
		{name: "file", method: "GET", path: "/v1/files/{file}"},
		{name: "file of nobody", method: "GET", path: "/v1/files/file_unknown"},
		{name: "file by its hash", method: "GET", path: "/v1/files/by-md5/BA13C3C339949489D79C2C76D278A124"},
		{name: "file by an unknown hash", method: "GET", path: "/v1/files/by-md5/00000000000000000000000000000000"},
		{name: "file by no hash", method: "GET", path: "/v1/files/by-md5/xyz"},
		{name: "files", method: "GET", path: "/v1/files"},
		{name: "first page", method: "GET", path: "/v1/files?limit=1", keep: "cursor", from: "next_cursor"},
		{name: "next page", method: "GET", path: "/v1/files?limit=2&cursor={cursor}"},
		{name: "forged cursor", method: "GET", path: "/v1/files?cursor=forged"},
		{name: "page of nothing", method: "GET", path: "/v1/files?limit=0"},
		{name: "page of words", method: "GET", path: "/v1/files?limit=many"},
		// After the lists: if the calls are slow, its minute may end on one of the
		// two servers first.
		{name: "upload for a minute", method: "POST", path: "/v1/files", form: file(text("ttl_seconds", "60"))},

		{name: "mint", method: "POST", path: "/v1/client/tokens", body: `{"expiresIn":600,"allowedModels":["gen-2.5"],"metadata":{"a":1}}`, kind: json, keep: "token", from: "apiKey"},
		{name: "mint without a body", method: "POST", path: "/v1/client/tokens"},
		{name: "mint for too long", method: "POST", path: "/v1/client/tokens", body: `{"expiresIn":3601,"allowedModels":["gen-9",3]}`, kind: json},
		{name: "a token mints none", method: "POST", path: "/v1/client/tokens", token: true},
		{name: "a token lists nothing", method: "GET", path: "/v1/files", token: true},
		{name: "a token gets a file", method: "GET", path: "/v1/files/{file}", token: true},
		{name: "a token's models", method: "POST", path: "/v1/jobs/gen-2.1", form: clip(), token: true},

		{name: "key", method: "POST", path: "/v1/keys", body: `{"label":"render farm"}`, kind: json, keep: "key", from: "id"},
		{name: "key without a label", method: "POST", path: "/v1/keys", body: `{"admin":1}`, kind: json},
		{name: "revoke", method: "DELETE", path: "/v1/keys/{key}"},
		{name: "revoke an unknown key", method: "DELETE", path: "/v1/keys/key_0123456789ab"},
		{name: "a token lists no keys", method: "GET", path: "/v1/keys", token: true},

		{name: "job", method: "POST", path: "/v1/jobs/gen-2.5", form: clip(text("prompt", "film noir"), text("seed", "7")), keep: "job", from: "job_id"},
		{name: "job of a file", method: "POST", path: "/v1/jobs/gen-latest", form: clip(text("prompt", "x"))},
		{name: "job without a video", method: "POST", path: "/v1/jobs/gen-2.5", form: func() servertest.Form { return servertest.Form{servertest.Text("prompt", "x")} }},
		{name: "job of a picture", method: "POST", path: "/v1/jobs/gen-2.5", form: func() servertest.Form { return servertest.Form{servertest.File("data", "a.mp4", picture)} }},
		{name: "job of an unknown file", method: "POST", path: "/v1/jobs/gen-2.5", form: func() servertest.Form { return servertest.Form{servertest.Text("data", "file_unknown")} }},
		{name: "job with every field wrong", method: "POST", path: "/v1/jobs/gen-2.5", form: clip(text("seed", "-1"), text("resolution", "4k"), text("enhance_prompt", "perhaps"), text("prompt", strings.Repeat("é", 4001)))},
		{name: "restyle by nothing", method: "POST", path: "/v1/jobs/gen-restyle-2", form: clip()},
		{name: "words to video", method: "POST", path: "/v1/jobs/gen-pro-t2v", body: "prompt=aurora+%C3%A9&seed=1", kind: "application/x-www-form-urlencoded"},
		{name: "no words to video", method: "POST", path: "/v1/jobs/gen-pro-t2v", body: "seed=x", kind: "application/x-www-form-urlencoded"},
		{name: "job of an unknown model", method: "POST", path: "/v1/jobs/gen-9", form: clip()},
		{name: "unknown job", method: "GET", path: "/v1/jobs/job_unknown"},
		{name: "content of an unknown job", method: "GET", path: "/v1/jobs/job_unknown/content"},
		{name: "image of an unknown model", method: "POST", path: "/v1/generate/gen-2.5", form: clip()},

		{name: "delete", method: "DELETE", path: "/v1/files/{file}"},
		{name: "delete again", method: "DELETE", path: "/v1/files/{file}"},
		{name: "deleted file", method: "GET", path: "/v1/files/{file}"},
	}
}

// caller sends calls and keeps the values that later ones need.
type caller struct {
	client *servertest.Client
	kept   map[string]string
}

func newCaller(client *servertest.Client) *caller { return &caller{client, map[string]string{}} }

func (c *caller) send(t *testing.T, r request) servertest.Answer {
	t.Helper()
	path := r.path
	for name, value := range c.kept {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	client, headers := *c.client, slices.Clone(r.headers)
	switch {
	case r.noKey:
		client.Key = ""
	case r.token:
		client.Key = c.kept["token"]
	}
	var answer servertest.Answer
	var err error
	switch {
	case r.form != nil:
		body, length, kind := r.form().Encode()
		answer, err = client.Call(bounded(t), r.method, path, body, length, append(headers, "Content-Type", kind)...)
	case r.body != "":
		answer, err = client.Call(bounded(t), r.method, path, strings.NewReader(r.body), int64(len(r.body)),
			append(headers, "Content-Type", r.kind)...)
	default:
		answer, err = client.Call(bounded(t), r.method, path, http.NoBody, 0, headers...)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.keep != "" {
		var body map[string]any
		if err := json.Unmarshal(answer.Body, &body); err != nil {
			t.Fatalf("%s: %v", answer.Body, err)
		}
		c.kept[r.keep], _ = body[r.from].(string)
	}
	return answer
}

// drawn matches what differs between any two runs: ids, tokens, seeds, cursors, times
// and the gateway's address; and the tier, because the one-machine server is called
// with its development key.
var drawn = regexp.MustCompile(
	`"tier":"[a-z]+"|"(file|job|ek|ck|key)_[0-9A-Za-z_-]+"|"next_cursor":"[^"]+"|"seed":[0-9]+|"token":"eyJ[^"]+"|"url":"https?://[^"]+"|"20[0-9]{2}-[^"]+Z"`)

func masked(body []byte) string {
	return string(drawn.ReplaceAll(bytes.TrimSpace(body), []byte(`"…"`)))
}
