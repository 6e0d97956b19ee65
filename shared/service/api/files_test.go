package api_test

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/file"
)

type reference struct {
	ID        string  `json:"id"`
	Filename  string  `json:"filename"`
	MIME      string  `json:"mime_type"`
	Size      int64   `json:"size_bytes"`
	MD5       string  `json:"md5"`
	CreatedAt string  `json:"created_at"`
	ExpiresAt *string `json:"expires_at"`
}

func (w *world) stored(a answer) reference {
	w.t.Helper()
	var r reference
	if err := json.Unmarshal([]byte(a.body), &r); err != nil || a.status != http.StatusOK || !file.IsReference(r.ID) {
		w.t.Fatalf("no file reference: %d %s", a.status, a.body)
	}
	return r
}

func (w *world) send(key string, parts ...part) answer {
	w.t.Helper()
	body, contentType := multiform(parts...)
	return w.request(http.MethodPost, "/v1/files", key, strings.NewReader(body), "Content-Type: "+contentType)
}

func (w *world) keep(key, bytes string, more ...part) reference {
	w.t.Helper()
	return w.stored(w.send(key, append([]part{upload("file", bytes)}, more...)...))
}

type page struct {
	Files      []reference
	NextCursor *string `json:"next_cursor"`
}

func (p page) ids() []string {
	ids := []string{}
	for _, r := range p.Files {
		ids = append(ids, r.ID)
	}
	return ids
}

func (w *world) list(key, query string) page {
	w.t.Helper()
	a := w.get("/v1/files?"+query, key)
	var keys map[string]json.RawMessage
	var p page
	if json.Unmarshal([]byte(a.body), &keys) != nil || json.Unmarshal([]byte(a.body), &p) != nil ||
		a.status != http.StatusOK ||
		len(keys) != 2 || keys["next_cursor"] == nil || p.Files == nil {
		w.t.Fatalf("no page: %d %s", a.status, a.body)
	}
	return p
}

func (w *world) pass(d time.Duration) { w.later.Add(int64(d)) }

func hexMD5(bytes string) string {
	sum := md5.Sum([]byte(bytes))
	return hex.EncodeToString(sum[:])
}

// See docs/contract/media.md#file-reference.
func TestFileReferenceMatchesContract(t *testing.T) {
	w := newWorld(t, setup{})
	before := time.Now().UTC().Truncate(time.Millisecond)
	a := w.send(studio, part{"file", "holiday.png", picture(t)})
	r := w.stored(a)
	created, err := time.Parse("2006-01-02T15:04:05.000Z", r.CreatedAt)
	if err != nil || created.Before(before) || created.After(time.Now()) {
		t.Errorf("created at %s: %v", r.CreatedAt, err)
	}
	if want := created.Add(24 * time.Hour).Format("2006-01-02T15:04:05.000Z"); r.ExpiresAt == nil || *r.ExpiresAt != want {
		t.Errorf("expires at %v, want %s", r.ExpiresAt, want)
	}
	want := fmt.Sprintf(`{"id":%q,"filename":"holiday.png","mime_type":"image/png","size_bytes":%d,"md5":%q,`+
		`"created_at":%q,"expires_at":%q}`,
		r.ID, len(picture(t)), hexMD5(picture(t)), r.CreatedAt, *r.ExpiresAt)
	for name, got := range map[string]string{
		"upload": a.body,
		"get":    w.get("/v1/files/"+r.ID, studio).body,
		"by-md5": w.get("/v1/files/by-md5/"+r.MD5, studio).body,
		"list": strings.TrimSuffix(strings.TrimPrefix(w.get("/v1/files", studio).body, `{"files":[`),
			`],"next_cursor":null}`),
	} {
		if got != want {
			t.Errorf("%s returns %s, want %s", name, got, want)
		}
	}

	forever := w.keep(studio, "x", text("ttl_seconds", "persistent"))
	w.pass(40 * 24 * time.Hour)
	if a := w.get("/v1/files/"+forever.ID, studio); a.status != 200 || !strings.HasSuffix(a.body, `,"expires_at":null}`) {
		t.Errorf("a persistent file: %d %s", a.status, a.body)
	}
	if a := w.get("/v1/files/"+r.ID, studio); a.status != 404 || a.body != `{"detail":"File not found."}` {
		t.Errorf("an expired file: %d %s", a.status, a.body)
	}
}

func TestForeignCursorIsRejected(t *testing.T) {
	w := newWorld(t, setup{})
	if got := w.get("/v1/files", studio).body; got != `{"files":[],"next_cursor":null}` {
		t.Errorf("an empty list is %s", got)
	}
	var ids []string
	for i := range 5 {
		ids = append(ids, w.keep(studio, fmt.Sprint(i)).ID)
	}
	slices.Reverse(ids)
	first := w.list(studio, "limit=2")
	if first.NextCursor == nil || !slices.Equal(first.ids(), ids[:2]) {
		t.Fatalf("the first page is %+v", first)
	}
	for _, limit := range []string{"limit=1&", "limit=3&", "limit=1000&", ""} {
		rest := w.list(studio, limit+"cursor="+*first.NextCursor)
		if got := rest.ids(); len(got) == 0 || !slices.Equal(got, ids[2:2+len(got)]) {
			t.Errorf("after the cursor with %q: %v", limit, got)
		}
	}
	cursor := *first.NextCursor
	for says, wrong := range map[string]struct{ key, query string }{
		"another account's":  {rival, "cursor=" + cursor},
		"a changed cursor":   {studio, "cursor=" + strings.ToLower(cursor)},
		"a truncated cursor": {studio, "cursor=" + cursor[:len(cursor)-1]},
		"an extended cursor": {studio, "cursor=" + cursor + "A"},
		"an id":              {studio, "cursor=" + ids[1]},
		"words":              {studio, "cursor=next%20page"},
		"an invalid escape":  {studio, "cursor=%zz"},
	} {
		problems := w.problems(w.get("/v1/files?"+wrong.query, wrong.key))
		if len(problems) != 1 || problems[0].Type != "value_error" ||
			!slices.Equal(problems[0].Loc, []string{"query", "cursor"}) {
			t.Errorf("%s: %+v", says, problems)
		}
	}
}

func TestByMD5FindsNewestFile(t *testing.T) {
	w := newWorld(t, setup{})
	bytes := "the exact\r\n\x00 bytes\n"
	hash := hexMD5(bytes)
	missing := func(path, key string) {
		t.Helper()
		if a := w.get("/v1/files/by-md5/"+path, key); a.status != 404 || a.body != `{"detail":"No file has this MD5."}` {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	missing(hash, studio)
	w.keep(studio, bytes)
	newest := w.keep(studio, bytes)
	w.keep(studio, bytes+"\n")
	missing(hash, rival)
	if newest.MD5 != hash {
		t.Errorf("the MD5 is %s, want %s", newest.MD5, hash)
	}
	for _, spelling := range []string{hash, strings.ToUpper(hash), strings.ToUpper(hash[:9]) + hash[9:]} {
		if got := w.stored(w.get("/v1/files/by-md5/"+spelling, studio)); got.ID != newest.ID {
			t.Errorf("%s returns %s, want the newest", spelling, got.ID)
		}
	}

	for _, malformed := range []string{hash[1:], hash + "0", "g" + hash[1:], "x", "%20" + hash[1:], hash[:31] + "%0A"} {
		problems := w.problems(w.get("/v1/files/by-md5/"+malformed, studio))
		if len(problems) != 1 || problems[0].Type != "string_pattern_mismatch" ||
			problems[0].Ctx["pattern"] != "^[0-9a-fA-F]{32}$" ||
			!slices.Equal(problems[0].Loc, []string{"path", "md5"}) {
			t.Errorf("%s: %+v", malformed, problems)
		}
	}
}

func TestReferenceCanBeReused(t *testing.T) {
	w := newWorld(t, setup{})
	video, image := w.keep(studio, clip(t)), w.keep(studio, picture(t))
	for range 2 {
		id := w.accepted(w.post("gen-2.5", studio, text("data", video.ID), upload("reference_image", image.ID)))
		if content(t, filepath.Join(w.root, "jobs", id, "data")) != clip(t) ||
			content(t, filepath.Join(w.root, "jobs", id, "reference_image")) != picture(t) {
			t.Error("the job's files differ from the stored ones")
		}
	}
	w.accepted(w.post("gen-image-2", studio, text("data", image.ID), text("prompt", "x")))
	if problems := w.problems(w.post("gen-2.5", rival, text("data", video.ID))); len(problems) != 1 ||
		problems[0].Input != video.ID {
		t.Errorf("another account's job: %+v", problems)
	}
	w.pass(25 * time.Hour)
	if problems := w.problems(w.post("gen-2.5", studio, text("data", video.ID))); len(problems) != 1 ||
		problems[0].Input != video.ID {
		t.Errorf("an expired reference: %+v", problems)
	}
}

func TestDeletedFileIsGone(t *testing.T) {
	w := newWorld(t, setup{})
	r, stays := w.keep(studio, "bytes"), w.keep(studio, "bytes")
	if a := w.request("DELETE", "/v1/files/"+r.ID, rival, nil); a.status != 404 {
		t.Errorf("by another account: %d %s", a.status, a.body)
	}
	a := w.request("DELETE", "/v1/files/"+r.ID, studio, nil)
	if a.status != 204 || a.body != "" || a.header.Get("Content-Type") != "" {
		t.Errorf("got %d %q %v", a.status, a.body, a.header)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if a := w.request(method, "/v1/files/"+r.ID, studio, nil); a.status != 404 ||
			a.body != `{"detail":"File not found."}` {
			t.Errorf("%s afterwards: %d %s", method, a.status, a.body)
		}
	}
	if got := w.list(studio, "").ids(); !slices.Equal(got, []string{stays.ID}) {
		t.Errorf("the list is %v", got)
	}
	if left := w.files(); len(left) != 1 {
		t.Errorf("remaining files: %v, want one", left)
	}
}

func TestListQueryIsValidated(t *testing.T) {
	w := newWorld(t, setup{})
	w.keep(studio, "x")
	var outcomes []outcome
	for _, query := range []string{
		"limit=0", "limit=-1", "limit=1001", "limit=99999999999999999999", "limit=ten", "limit=1.5", "limit=", "limit",
		"limit=%zz",
		"limit=x&cursor=y", "cursor=y", "cursor=%FF",
		"cursor=", "limit=&cursor=", "limit=1", "limit=1000", "limit=%2B1", "limit=1.0", "limit=0&limit=5", "page=2", "",
	} {
		o := outcome{says: query}
		a := w.get("/v1/files?"+query, studio)
		if o.status = a.status; a.status == 200 {
			o.lines = []any{len(w.list(studio, query).Files)}
		} else {
			for _, p := range w.problems(a) {
				o.lines = append(o.lines, p)
			}
		}
		outcomes = append(outcomes, o)
	}
	golden(t, "files-query", outcomes)
}
